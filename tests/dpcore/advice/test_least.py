"""No stated error is below the least possible one, and the releases that are optimal attain it."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.accounting.budget import Budget
from dpcore.advice.least import least_errors
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.releases.counts.count import Count
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.tables.margins import MarginTables
from papers.minimax_count.release import MinimaxCount
from tests.dpcore.releases.contract import CASES, KINDS

ADJACENCIES = [
    Adjacency(),
    Adjacency("add-remove"),
    Adjacency("replace-one", 3, unit="home"),
    Adjacency("add-remove", 3, unit="home"),
]


def domain(*sizes: int) -> Domain:
    return Domain(tuple(Categories(f"c{i}", tuple(range(s))) for i, s in enumerate(sizes)))


@st.composite
def releases(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    rows = draw(st.integers(1, 10**6))
    alpha = draw(st.sampled_from(["0.01", "0.5", "3", "20"]))
    adjacency = draw(st.sampled_from(ADJACENCIES))
    facts = "r", domain(*sizes), rows
    every = [
        attrs for k in range(1, len(sizes) + 1) for attrs in combinations(range(len(sizes)), k)
    ]
    sets = {*draw(st.lists(st.sampled_from(every), min_size=1)), *((i,) for i in range(len(sizes)))}
    aims = [None, "balanced", "mean", "max"] if min(sizes) > 1 else [None]
    pure, aim = Budget.of(alpha), draw(st.sampled_from(aims))
    return [
        Histogram(*facts, pure, adjacency=adjacency),
        ThresholdedHistogram(*facts, pure, adjacency=adjacency),
        ThresholdedHistogram(*facts, pure, occupied=1, adjacency=adjacency),
        MarginTables(*facts, pure, sets=tuple(sorted(sets)), adjacency=adjacency, aim=aim),
        MarginTables(
            *facts,
            Budget.of(alpha, draw(st.sampled_from(["1e-9", "0.01"]))),
            sets=tuple(sorted(sets)),
            noise="discrete-gaussian",
            adjacency=adjacency,
            aim=aim,
        ),
    ]


@pytest.mark.slow
@settings(max_examples=30)
@given(releases())
def test_the_least_error_is_below_that_of_every_table(built):
    for release in built:
        for error in least_errors(release):
            assert 0 < error.least <= error.value * (1 + 1e-6)
            assert 0 <= (error.on_every_table or 0) <= error.value


@pytest.mark.parametrize("name", KINDS)
def test_no_kind_has_a_ratio_below_one(name):
    for error in least_errors(CASES[name].release):
        assert error.ratio is None or error.ratio >= 1 - 1e-6


@pytest.mark.parametrize("loss", ["absolute", "squared", "zero-one"])
@pytest.mark.parametrize("adjacency", ADJACENCIES[:2])
def test_geometric_noise_is_the_best_for_a_count(loss, adjacency):
    made = Count(
        "c", domain(5), 10**6, Budget.of("0.5"), counted=(1,), loss=loss, adjacency=adjacency
    )
    (error,) = least_errors(made)
    assert error.ratio == pytest.approx(1, abs=1e-4)
    assert error.among == "all mechanisms of alpha 0.5"
    assert 0.05 < error.on_every_table / error.value < 0.25


def test_a_minimax_count_is_the_best_by_its_program():
    made = MinimaxCount("c", domain(5), 20, Budget.of("0.5"), counted=(1,))
    assert [error.ratio for error in least_errors(made)] == [1]


def test_cells_are_at_most_twice_as_wrong_as_they_must_be():
    """Replacing a record changes two cells; where records are added, the noise is the best."""
    for adjacency, ratio in zip(ADJACENCIES[:2], (2, 1), strict=True):
        made = Histogram("h", domain(64), 10**6, Budget.of("0.2"), adjacency=adjacency)
        assert [error.ratio for error in least_errors(made)] == pytest.approx([ratio] * 2, rel=0.02)


def test_a_table_with_a_known_number_of_occupied_cells_is_near_its_bound():
    made = ThresholdedHistogram("h", domain(2**16), 10**6, Budget.of("1"), occupied=3152)
    (error,) = least_errors(made)
    assert error.among == "all mechanisms of alpha 1, for at most 3,152 occupied cells"
    assert 1 < error.ratio < 10


def test_a_promise_that_no_bound_is_known_for_has_none():
    made = ThresholdedHistogram("h", domain(64), 1000, Budget.of("1", "1e-6"))
    assert least_errors(made) == []


@pytest.mark.parametrize("kind", ["FoundBounds", "RandomCount", "RandomHistogram"])
def test_a_kind_with_other_noise_does_not_inherit_a_bound(kind):
    releases = [case.release for case in CASES.values() if type(case.release).__name__ == kind]
    assert releases
    assert not any(map(least_errors, releases))
