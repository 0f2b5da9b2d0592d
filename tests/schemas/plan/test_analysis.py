"""Formulas of a plan hold columns and arithmetic, and nothing that runs."""

import pytest

from schemas.plan.analysis import Analysis
from schemas.releases.formulas import checked_columns

COLUMNS = ("age", "hours worked", "sex", "f", "age.1")


def checked(formula: str) -> None:
    checked_columns(Analysis(name="a", title="A", formula=formula).formula, COLUMNS)


@pytest.mark.parametrize(
    "formula",
    [
        "age ~ sex",
        "{age > 40.5} ~ sex * `hours worked`",
        "`age.1` ~ 0 + C(sex)",
        "log(`age.1`) ~ {exp(-age / 10)} + {sex == 'F'} : age - 1",
        '{(sex != "F") & (age <= 1e2)} ~ 1',
    ],
)
def test_what_models_need_is_allowed(formula):
    checked(formula)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("age ~ height", "'height' is not one of age, hours worked, sex"),
        ("age ~ {__import__('os').system('true')}", "is not allowed"),
        ("age ~ {age.values}", "'.values}' is not allowed"),
        ("age ~ age(1)", "'age' is not one of the functions C, exp, log"),
        ("age ~ {sex == 'a' * 9}", r"'\*' cannot follow a text"),
        ("age ~ {sex == 'a\\n'}", "is not allowed"),
        ("age ~ {9 ** 9}", "is not allowed"),
        ("age ~ {age := 1}", "is not allowed"),
        ("age ~ {age[0]}", "is not allowed"),
        ("age ~ {1_0}", "is not allowed"),
        ("age ~\nsex", "is not allowed"),
        ("f ~ " + " * ".join(["age"] * 8), r"more than 6 of the signs \* : /"),
        ("age", "write the response, ~ and the terms"),
        ("age ~ sex ~ age", "write the response, ~ and the terms"),
    ],
)
def test_programs_and_what_is_no_model_are_refused(formula, said):
    with pytest.raises(ValueError, match=said):
        checked(formula)
