"""Formulas of models are read into words, and nothing that is no word of one is accepted."""

import pytest

from dpcore.model_formula import ModelFormula, backticks_wanted


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("pay ~ age", ["age"]),
        ("`pay.1` ~ `years worked` + age", ["years worked", "age"]),
        ("pay ~ age * sex", None),
        ("pay ~ C(sex)", None),
        ("pay ~ age +", None),
        ("{pay > 3} ~ age", None),
        ("pay ~ age sex", None),
    ],
)
def test_sums_of_columns_are_found(text, added):
    assert ModelFormula.read(text).added_columns() == added


@pytest.mark.parametrize(
    "text", ["pay", "pay ~", "~ age", "pay ~ age ~ sex", "pay ~ a.b", "pay ~ a ** 2", "pay ~ a; b"]
)
def test_what_is_no_formula_of_a_plan_is_refused(text):
    with pytest.raises(ValueError, match=r"not allowed|write the response"):
        ModelFormula.read(text)


@pytest.mark.parametrize(
    "text", ["pay ~ pay", "{`pay 1` > 3} ~ age + `pay 1`", "pay ~ log(pay)", "pay ~ C(age):pay"]
)
def test_a_response_that_a_term_determines_is_refused(text):
    with pytest.raises(ValueError, match=r"^pay( 1)? is the response; leave it out of the terms$"):
        ModelFormula.read(text)
    ModelFormula.read("{pay / age} ~ age")  # a share of what is in a term is another number
    ModelFormula.read("{log(pay) > 3} ~ log(age)")


COLUMNS = ["body mass", "body", "net income (EUR)", "years.1", "age", "2019"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("body mass ~ age", "`body mass` ~ age"),
        ("age ~ C(body mass) * years.1", "age ~ C(`body mass`) * `years.1`"),
        ("{net income (EUR) > 2019} ~ age", "{`net income (EUR)` > 2019} ~ age"),
        ("`body mass` ~ years.1", "`body mass` ~ `years.1`"),
        ("{age == 'body mass'} ~ body + body mass", "{age == 'body mass'} ~ body + `body mass`"),
        ("`body mass` ~ age", None),
        ("body ~ anybody mass", None),
        ("age ~ height", None),
    ],
)
def test_the_formula_to_write_has_its_backticks(text, written):
    said = f"write {written}: names that are not single words need backticks" if written else ""
    assert backticks_wanted(text, COLUMNS) == said
    if written:
        ModelFormula.read(written)
