"""Which columns a plan may call often equal, and what is measured of them."""

from typing import Any

import pytest
from pydantic import ValidationError

from dpcore.domain.axes import Categories
from schemas.plan import Plan
from schemas.plan.digest import digest_of
from tests.shortest import document

COLUMNS: dict[str, Any] = {
    "own": {"type": "integer", "bounds": [0, 9]},
    "home": {"type": "integer", "bounds": [2, 19], "nullable": True},
    "tens": {"type": "integer", "bounds": [0, 90], "step": 10},
    "share": {"type": "continuous", "bounds": [0, 9]},
    "level": {"type": "integer", "levels": [1, 5, 7]},
    "sex": {"type": "categorical", "categories": ["F", "M"]},
}


def plan_of(equal: list[list[str]], columns: dict[str, Any] | None = None, **records: Any) -> Plan:
    columns = columns or COLUMNS
    section: dict[str, Any] = {
        "name": "everybody",
        "kind": "microdata-margins",
        "columns": [*columns],
        "bins": {"tens": [0, 50, 91], "share": 3, "home": [2, 10, 20]},
        "mechanism": "discrete-laplace",
    }
    stated = {"often_equal": equal} if equal else {}
    return Plan.model_validate(document(columns, [section | stated | records]))


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([["own", "hime"]], r"often_equal\[0\]: 'hime' is not among .*'home'"),
        ([["own", "sex"]], r"often_equal\[0\]: sex is not a column of numbers"),
        ([["own", "share"]], r"often_equal\[0\]: own and share must have the same type"),
        ([["own", "tens"]], r"often_equal\[0\]: own and tens must have the same type and `step`"),
        ([["own", "own"]], r"often_equal\[0\]: must be two different columns"),
        ([["own", "home"], ["home", "own"]], r"often_equal\[1\]: must be two different columns"),
        ([["own", "level", "home"]], r"often_equal"),
    ],
)
def test_what_cannot_be_equal_is_refused(pairs, says):
    with pytest.raises(ValidationError, match=says):
        plan_of(pairs)


def test_a_column_of_that_name_is_refused():
    taken = COLUMNS | {"own_equals_home": COLUMNS["sex"]}
    with pytest.raises(ValidationError, match="needs the name 'own_equals_home'"):
        plan_of([["own", "home"]], taken)


def test_it_is_measured_with_every_other_column_and_obeyed():
    (release,) = plan_of([["own", "home"], ["level", "own"]]).built.values()
    *_, equal, other = release.domain.axes
    assert equal == Categories("own_equals_home", ("no", "yes"), compares=("own", "home"))
    places = range(len(release.domain.axes))
    for place in places[:-2]:
        assert {(place, len(places) - 2), (place, len(places) - 1)} <= {*release.tables}
    assert other.name == "level_equals_own"
    when = {rule.when for rule in release.rules if rule.differences}
    assert when >= {((len(places) - 2, (1,)),), ((len(places) - 1, (1,)),)}


def test_with_few_pairs_it_is_measured_with_its_own_columns():
    pairs = [["own", "sex"], ["home", "tens"], ["share", "level"]]
    (release,) = plan_of([["own", "home"]], pairs=pairs).built.values()
    named = {tuple(release.domain.names[a] for a in attrs) for attrs in release.tables}
    assert {names for names in named if "own_equals_home" in names} == {
        ("own", "own_equals_home"),
        ("home", "own_equals_home"),
    }


def test_a_plan_without_it_has_the_digest_that_it_had():
    plan = plan_of([])
    assert "often_equal" not in plan.public()["releases"][0]
    assert plan.digest == digest_of(plan.public())
    assert "own_equals_home" in plan_of([["own", "home"]]).described_columns
