"""Cells of records obey the inequalities that their groups can obey, and stay in their groups."""

import numpy as np
import pytest

from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.post.records.cells_in_order import cells_in_order
from dpcore.post.records.rules import breaks_rules
from dpcore.releases.tables.groups import rule_of_groups
from schemas.releases.rules import RuleSection, build_rules

DOMAIN = Domain(
    (
        Grid("a", 0, 40, 40, integer=True),
        Grid("b", 5, 45, 40, nullable=True, integer=True),
        Grid("c", 0, 60, 60, integer=True),
        Categories("same", ("no", "yes")),
    )
)
RULES = build_rules(
    [
        RuleSection.model_validate(each)
        for each in (
            "a <= c",
            "c <= a + 20",
            {"if": {"same": ["yes"]}, "then": "a <= b"},
            {"if": {"same": ["yes"]}, "then": "a >= b"},
            {"if": {"same": ["yes"]}, "then": {"b": {"from": 5}}},
        )
    ],
    DOMAIN,
)


@pytest.mark.parametrize("seed", range(5))
def test_cells_are_in_order_where_groups_may_be(seed):
    generator = np.random.default_rng(seed)
    groups = []
    for axis in DOMAIN.axes[:3]:
        first = generator.choice(np.arange(1, axis.cells), 5, replace=False)
        starts = np.isin(np.arange(axis.size), [*first, *[axis.cells] * axis.nullable])
        groups.append(np.cumsum(starts))
    groups.append(np.arange(2))
    codes = generator.integers(0, DOMAIN.shape, (20_000, 4))
    of_groups = [rule_of_groups(rule, groups) for rule in RULES]
    held = np.stack([of[column] for of, column in zip(groups, codes.T, strict=True)], axis=1)
    codes = codes[~breaks_rules(held, of_groups)]
    assert len(codes) > 1000
    assert breaks_rules(codes, RULES).any()
    inside = {i: (of[codes[:, i]], of) for i, of in enumerate(groups[:3])}
    found = cells_in_order(codes, inside, RULES, generator)
    assert not breaks_rules(found, RULES).any()
    for column, of in enumerate(groups):
        assert np.array_equal(of[found[:, column]], of[codes[:, column]])
    kept = ~breaks_rules(codes, RULES)
    assert np.array_equal(found[kept], codes[kept])


def test_records_that_obey_stay_as_they_are():
    codes = np.array([[3, 40, 10, 0]])
    generator = np.random.default_rng(0)
    assert cells_in_order(codes, {}, RULES, generator) is codes
