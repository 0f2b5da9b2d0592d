"""Formulas of models are read into words, and nothing that is no word of one is accepted."""

import pytest

from dpcore.model_formula import ModelFormula


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("pay ~ age", ["age"]),
        ("`pay.1` ~ `years worked` + age", ["years worked", "age"]),
        ("pay ~ age * sex", None),
        ("pay ~ C(sex)", None),
        ("pay ~ age +", None),
        ("pay ~", None),
        ("{pay > 3} ~ age", None),
        ("pay ~ age sex", None),
    ],
)
def test_sums_of_columns_are_found(text, added):
    assert ModelFormula.read(text).added_columns() == added


@pytest.mark.parametrize(
    "text", ["pay", "pay ~ age ~ sex", "pay ~ a.b", "pay ~ a ** 2", "pay ~ a; b"]
)
def test_what_is_no_formula_of_a_plan_is_refused(text):
    with pytest.raises(ValueError, match=r"not allowed|write the response"):
        ModelFormula.read(text)
