"""A guarantee under one relation is none under another: audits tell them apart."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import ReleaseDraws, audit_mechanism, audit_release, audit_releases
from dpcore.audit.neighbours import neighbouring_pairs
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import LINE, RELATIONS

SIZES = Domain((Categories("size", (1, 2, 3)),))
HISTOGRAM = Histogram("h", SIZES, 9, Budget.of("1"))
DRAWS = 10_000


@pytest.mark.parametrize(
    "adjacency", [RELATIONS[0], pytest.param(RELATIONS[2], marks=pytest.mark.slow)]
)
def test_releases_hold_what_they_promise_for_their_own_neighbours(adjacency: Adjacency):
    for release in (
        replace(HISTOGRAM, adjacency=adjacency),
        RatioMean("m", LINE, 9, Budget.of("1"), adjacency=adjacency),
        ColumnQuantiles("q", LINE, 9, Budget.of("1"), (Fraction(1, 3),), adjacency=adjacency),
    ):
        result = audit_release(release, draws=DRAWS, level=0.9999, source=SeededSource(1))
        assert result.passed
    counts = audit_releases(
        [replace(HISTOGRAM, name=name, adjacency=adjacency) for name in ("a", "b")],
        draws=DRAWS,
        level=0.9999,
        source=SeededSource(2),
    )
    assert counts.passed
    assert counts.lower_bound > 1.4  # one of both loses 1


@pytest.mark.parametrize(
    ("promised", "asked"),
    [
        (Adjacency("add-remove"), REPLACE_ONE),
        (Adjacency("add-remove"), Adjacency("add-remove", 2)),
        (REPLACE_ONE, Adjacency("replace-one", 2)),
    ],
)
def test_a_promise_for_other_neighbours_costs_twice_as_much_here(
    promised: Adjacency, asked: Adjacency
):
    release = replace(HISTOGRAM, adjacency=promised)
    pairs = neighbouring_pairs(release.domain, release.rows, asked)[:2]
    found = audit_mechanism(
        [ReleaseDraws(release, pair) for pair in pairs],
        release.share,
        DRAWS,
        SeededSource(3),
        level=0.9999,
    )
    assert not found.passed
    assert 1.7 < found.lower_bound <= 2


def test_releases_of_different_neighbours_are_not_audited_together():
    other = replace(HISTOGRAM, adjacency=Adjacency("add-remove"))
    with pytest.raises(ValueError, match="must have the same number of rows"):
        audit_releases([HISTOGRAM, other], draws=100)
