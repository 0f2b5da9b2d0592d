"""What the precisions of tables are chosen for, in a plan: what cannot be meant is refused."""

import pytest
from pydantic import TypeAdapter, ValidationError

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.releases.tables.margins import MarginTables
from schemas.releases.optimise import Optimise, aim_of

PAIRS = ((0,), (1,), (0, 1))


def aim(given: object) -> object:
    return aim_of(TypeAdapter(Optimise).validate_python(given), PAIRS, ["sex", "age"])


def test_a_table_overrides_its_number_of_columns():
    assert aim({1: 5, "age": 2}) == (5, 2, 1)
    assert aim({"age.sex": 3}) == (1, 1, 3)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sex.age": 2, "age.sex": 3}, "is listed twice, perhaps in another order"),
        ({"1": 2, 1: 3}, "is listed twice"),
        ({True: 3}, "give weights by table size or by table"),
        ({}, "give weights by table size or by table"),
        ({"sex.income": 2}, "not a table of the release"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(given, says):
    with pytest.raises((ValueError, ValidationError), match=says):
        aim(given)


def test_a_wish_without_effect_is_stated():
    for sets, words in ((((0,), tuple(range(7))), True), (((0,), (0, 1), (1, 2)), False)):
        names = "abcdefg"[: 1 + max(map(max, sets))]
        domain = Domain(tuple(Categories(name, ("x", "y")) for name in names))
        release = MarginTables(
            "m", domain, 100, Budget.of("1"), sets, aim="mean", adjacency=Adjacency()
        )
        notes = " ".join(statement.note for statement in release.expected_error())
        assert ("for this aim, equal precision of all tables is best" in notes) is words
