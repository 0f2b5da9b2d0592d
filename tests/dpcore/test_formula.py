"""Formulas compute what Python computes, are null where they must be, and refuse everything else."""

import numpy as np
import pytest

from dpcore.formula import Formula

KINDS = {
    "weight": "number",
    "height": "whole",
    "sex": "text",
    "owner": "truth",
    "body mass": "number",
    "größe": "number",
}
ROWS = 400
RANDOM = np.random.default_rng(6)
COLUMNS = {
    "weight": np.ma.masked_array(RANDOM.uniform(-5, 90, ROWS), mask=RANDOM.random(ROWS) < 0.2),
    "height": np.ma.masked_array(RANDOM.integers(-3, 4, ROWS), mask=RANDOM.random(ROWS) < 0.2),
    "sex": np.ma.masked_array(RANDOM.choice(["F", "M"], ROWS), mask=RANDOM.random(ROWS) < 0.2),
    "owner": RANDOM.random(ROWS) < 0.5,
    "body mass": RANDOM.uniform(0, 1, ROWS),
    "größe": RANDOM.uniform(0, 1, ROWS),
}
WORDS = {"body mass": "body_mass"}


def by_python(text: str, row: int) -> object:
    """One record's value by Python itself, null where a value that it looks up is null."""

    class Null(Exception):
        pass

    class Row(dict):
        def __missing__(self, name: str) -> object:
            if name == "null":
                raise Null
            if name in ("min", "max", "abs", "round"):
                return __builtins__[name]
            value = COLUMNS[next((k for k, v in WORDS.items() if v == name), name)][row]
            if value is np.ma.masked:
                raise Null
            return value.item()

    try:
        value = eval(text.replace("`body mass`", "body_mass"), {}, Row())
    except (Null, ZeroDivisionError):
        return None
    return None if isinstance(value, complex) else value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("weight / (height / 100) ** 2", "number"),
        ("-height + abs(height) - +2", "whole"),
        ("weight / height", "number"),
        ("round(weight, 2)", "number"),
        ("min(weight, height, 3)", "number"),
        ("weight if height > 0 else null", "number"),
        ("'tall' if height >= 2 else 'short'", "text"),
        ("weight / height if height != 0 else 7", "number"),
        ("sex == 'F' and not owner", "truth"),
        ("owner == True or 0 <= height < 2", "truth"),
        ("`body mass` * 2 + größe", "number"),
    ],
)
def test_values_are_those_of_python_and_null_where_one_is_missing(text: str, kind: str):
    formula = Formula.read(text, KINDS)
    assert formula.kind == kind
    found = np.ma.masked_array(formula.values(COLUMNS)).tolist()
    lazy = " and " in text or " or " in text
    for row in range(ROWS):
        expected = by_python(text, row)
        if lazy and found[row] is None:
            continue  # Python stops at the first side that decides
        assert found[row] == pytest.approx(expected), (row, expected)
    assert {type(value) for value in found} - {type(None)} == {
        {"whole": int, "number": float, "truth": bool, "text": str}[kind]
    }


def test_what_is_not_finite_or_exact_is_null():
    for text in ("weight / 0", "weight * 1e300 * 1e300", "(-1) ** 0.5", "9 ** 9 ** 9"):
        assert np.ma.getmaskarray(Formula.read(text, KINDS).values(COLUMNS | {"x": None})).all()
    large = Formula.read("height * 9007199254740992", KINDS).values(COLUMNS)
    assert set(large.compressed()) <= {0, 2**53, -(2**53)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weight / heigth", "at character 10: there is no column 'heigth'"),
        ("  weight + `no such`", "at character 10: there is no column 'no such'"),
        ("weight +", "is not a formula"),
        ("", "is not a formula"),
        ("sex + 1", "at character 1: is text, but a number is needed"),
        ("sex == 1", "at character 8: is whole, but the other value is text"),
        ("__import__('os').system('x')", "the functions of a formula are"),
        ("weight.real", "Attribute is not allowed"),
        ("[weight][0]", "Subscript is not allowed"),
        ("(lambda: 1)()", "the functions of a formula are"),
        ("min()", "the functions of a formula are"),
        ("1e999", "too large"),
        ("null", "always null"),
        ("weight == null", "comparison with null is always null"),
        ("(" * 400 + "1" + ")" * 400, "formula"),
        ("1+" * 600 + "1", "at most 1000 characters"),
        ("-" * 900 + "weight", "more than 150 levels of nesting"),
        ("weight" + "+1" * 400, "more than 150 levels of nesting"),
        ("f'{weight}'", "JoinedStr is not allowed"),
        ("weight\x00", "formula"),
    ],
)
def test_everything_else_is_refused_with_its_place(text: str, said: str):
    with pytest.raises(ValueError, match=r"at character \d+") as caught:
        Formula.read(text, KINDS)
    assert said in str(caught.value)
