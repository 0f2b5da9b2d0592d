"""Counts over a tree of regions: what holds exactly, what agrees, and how accurate sums are."""

from typing import Any

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit.neighbours import neighbouring_pairs
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.table import Published
from dpcore.releases.tables.hierarchy import Hierarchy
from dpcore.releases.tables.totals import Totals
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import opened, tally_of

STATES = Categories("state", ("A", "B", "C"))
COUNTIES = Categories("county", ("1", "2", "3"))
TRACTS = Categories("tract", tuple(range(12)))
SEX = Categories("sex", ("F", "M"))
PLACES = Domain((STATES, COUNTIES, TRACTS))
PEOPLE = Domain((*PLACES.axes, SEX))
LISTED = Regions(PLACES, np.flatnonzero(np.arange(PLACES.size) % 5 < 3))
SHARE, PURE = Budget.of("1", "1e-6"), Budget.of("1")
ADDED = Adjacency("add-remove")


def release(rows: int = 1000, regions: Regions = LISTED, **rest: Any) -> Hierarchy:
    rest = {"noise": "discrete-gaussian", "share": SHARE, "domain": PEOPLE} | rest
    return Hierarchy("people", rows=rows, regions=regions, **rest)


def made(rows: int = 1000, domain: Domain = PEOPLE, seed: int = 1) -> Tally:
    return tally_of(domain, np.random.default_rng(seed).integers(0, domain.size, rows))


def published(of: Hierarchy, tally: Tally, seed: int = 3) -> Published:
    exact = of.statistic(tally)
    return of.publish(perturb(exact, of.mechanism, of.share, SeededSource(seed)))


def numbers(of: Hierarchy, found: Published, column: str) -> dict[int, np.ndarray]:
    return {
        level: table.columns[column].reshape(-1, of.width)
        for level, table in zip(of.measured, found.tables, strict=True)
    }


@pytest.mark.parametrize("adjacency", [Adjacency(), ADDED], ids=["rows public", "rows private"])
@pytest.mark.parametrize("column", ["estimate", "count"])
def test_every_region_is_the_sum_of_its_parts(adjacency: Adjacency, column: str):
    of = release(adjacency=adjacency)
    tables = numbers(of, published(of, made()), column)
    for level in range(1, 4):
        np.testing.assert_allclose(
            LISTED.gathered(level, tables[level]), tables[level - 1], atol=1e-6
        )
    if adjacency.public_rows:
        assert tables[0].sum() == pytest.approx(1000)


def test_a_record_that_is_in_no_listed_region_counts_outside():
    of, cell = release(2), int(PLACES.pack(np.array([[1, 2, 3]]))[0])
    assert cell not in LISTED.leaves
    one = Tally(PEOPLE, np.array([2 * cell, 2 * int(LISTED.leaves[0]) + 1]), np.array([1, 1]))
    found = opened(of, one)
    outside = [2 * sum(LISTED.sizes[: level + 1]) - 2 for level in range(4)]
    assert found[outside].tolist() == [1, 1, 1, 1]
    assert found.sum() == 8
    table = published(of, one).tables[-1].columns
    assert [column.mask[-2:].all() for column in (table["state"], table["tract"])] == [True, True]
    assert not table["state"].mask[:-2].any()


TOTALS = Totals(1, np.array([300, 250, 150]))


@pytest.mark.parametrize("adjacency", [Adjacency(), ADDED], ids=["rows public", "rows private"])
@pytest.mark.parametrize("column", ["estimate", "count"])
def test_totals_and_zeros_hold_exactly(adjacency: Adjacency, column: str):
    possible = np.random.default_rng(1).random((LISTED.sizes[-1], 2)) < 0.8
    of = release(totals=TOTALS, possible=possible, adjacency=adjacency)
    found = published(of, made())
    tables = numbers(of, found, column)
    assert tables[1][:3].sum(axis=1) == pytest.approx(TOTALS.counts)
    assert not tables[3][~possible].any()
    assert not numbers(of, found, "standard_error")[3][~possible].any()
    for level in range(1, 4):
        np.testing.assert_allclose(
            LISTED.gathered(level, tables[level]), tables[level - 1], atol=1e-6
        )
    rest = tables[1][3].sum()
    assert rest == pytest.approx(300) if adjacency.public_rows else rest != pytest.approx(300)
    assert "are exact" in found.facts["totals"]
    assert ("two steps" in found.facts["totals"]) == (adjacency == ADDED)


@pytest.mark.parametrize("adjacency", [Adjacency(), ADDED], ids=["rows public", "rows private"])
def test_totals_without_columns_leave_only_the_levels_below_to_measure(adjacency: Adjacency):
    of = release(domain=PLACES, totals=TOTALS, adjacency=adjacency)
    assert list(of.measured) == [2, 3]
    found = published(of, made(domain=PLACES))
    assert [table.name for table in found.tables] == [
        "people.state.county",
        "people.state.county.tract",
    ]
    counties = found.tables[0].columns["estimate"]
    states = LISTED.gathered(2, counties)
    assert states[:3].tolist() == pytest.approx([300, 250, 150])
    assert (states[3] == pytest.approx(300)) == adjacency.public_rows
    assert LISTED.gathered(2, found.tables[0].columns["count"])[:3].tolist() == [300, 250, 150]
    with pytest.raises(ValueError, match="nothing to measure"):
        release(700, ALL_STATES, domain=ALL_STATES.domain, totals=TOTALS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"totals": Totals(1, np.array([900, 250, 150]))}, "totals: add up to 1,300"),
        (
            {"totals": TOTALS, "possible": np.zeros((LISTED.sizes[-1], 2), dtype=bool)},
            "a region has records, but none of its cells",
        ),
        (
            {
                "regions": Regions(PLACES, np.arange(PLACES.size)),
                "possible": np.zeros((PLACES.size, 2), dtype=bool),
            },
            "a region has records, but none of its cells",
        ),
        ({"totals": TOTALS, "adjacency": Adjacency(weighted=True)}, "counts weights"),
        ({"regions": Regions(PLACES, np.array([5])), "domain": PLACES, "rows": 2**62}, "rows: "),
    ],
)
def test_what_contradicts_itself_is_refused(change: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        release(**change)


ALONE = Regions(Domain((Categories("state", ("A",)),)), np.array([0]))
ALL_STATES = Regions(Domain((STATES,)), np.arange(3))
TWO = Domain((*ALL_STATES.domain.axes, SEX))

EDGES = {
    "one leaf": release(5, ALONE, domain=Domain((*ALONE.domain.axes, SEX))),
    "one leaf, no columns": release(5, ALONE, domain=ALONE.domain, adjacency=ADDED),
    "one level": release(5, ALL_STATES, domain=TWO),
    "one level, no columns": release(5, ALL_STATES, domain=ALL_STATES.domain),
    "one record": release(1),
    "one listed leaf of many": release(5, Regions(PLACES, np.array([7]))),
    "pure": release(5, share=PURE, noise="discrete-laplace"),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("mass", ["nobody", "everybody in one cell", "everybody in the last"])
def test_edges_publish_finite_numbers(name: str, mass: str):
    of = EDGES[name]
    cell = 0 if mass == "everybody in one cell" else of.domain.size - 1
    records = np.full(of.rows, cell) if mass != "nobody" else np.array([], dtype=np.int64)
    for table in published(of, tally_of(of.domain, records)).tables:
        columns = table.columns
        for column in (*of.statistics,):
            assert np.isfinite(columns[column].astype(float)).all(), column
        assert (columns["lower_90"] <= columns["upper_90"]).all()
        assert (columns["count"] >= 0).all()


def test_one_leaf_with_a_public_number_of_records_has_nothing_to_measure():
    with pytest.raises(ValueError, match="nothing to measure"):
        release(5, ALONE, domain=ALONE.domain)


def test_an_audit_moves_a_record_between_regions_where_both_ends_lie_outside():
    """Without columns, a record that moves from outside to outside changes nothing."""
    of = release(50, Regions(PLACES, np.array([9, 40, 70])), domain=PLACES)
    pairs = neighbouring_pairs(of.domain, of.rows, of.adjacency, of.worst_tables())
    moved = [opened(of, pair.far) - opened(of, pair.near) for pair in pairs[:2]]
    assert np.sum(moved[0] ** 2) == of.mechanism.l2_sensitivity_squared == 6
    assert not moved[1].any()
