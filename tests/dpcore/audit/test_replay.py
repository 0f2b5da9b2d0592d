"""Replay finds what a neighbour changes too much, and nothing where sensitivities are right."""

from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import ReleaseDraws, neighbouring_pairs, short_audit
from dpcore.audit.fuzz import fuzzed_pairs
from dpcore.audit.replay import replay
from dpcore.domain.adjacency import Adjacency
from dpcore.errors import DPReleaseError
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.counts.histogram import Histogram
from dpcore.sampling.source import SeededSource
from tests.dpcore.audit.gallery import TABLE
from tests.dpcore.releases.contract import CASES, LAWS, RELATIONS, tally_of

RELEASE = Histogram("h", TABLE, 9, Budget.of("1"))
REPLAYED = [*LAWS, "quantiles", "mean of private rows", "spectral density", "classifier", "moments"]
"""Every mechanism, and kinds whose statistic is no table of counts."""


def at_random(release, seed: int = 1):
    generator = np.random.default_rng(seed)
    return fuzzed_pairs(release.domain, release.rows, release.adjacency, generator)


@pytest.mark.parametrize("name", REPLAYED)
def test_no_kind_of_release_changes_by_more_than_it_declares(name: str):
    """Under every relation and unit that it allows; and it comes near, so that a fault would show."""
    release = CASES[name].release
    found = replay(release, islice(at_random(release), 24))
    assert found.passed
    assert found.moved > 0.45
    for adjacency in RELATIONS:
        try:
            other = replace(release, adjacency=adjacency)
            assert other.mechanism
        except (ValueError, DPReleaseError):
            continue
        assert replay(other, islice(at_random(other), 6)).passed


def test_a_sensitivity_of_half_the_truth_is_found_at_once(monkeypatch):
    monkeypatch.setattr(Histogram, "l1_sensitivity", Fraction(1))
    found = replay(RELEASE, at_random(RELEASE))
    assert found.moved == 2
    assert not found.passed


def test_the_short_audit_fails_by_replay_whatever_the_number_of_draws(monkeypatch):
    monkeypatch.setattr(Histogram, "l1_sensitivity", Fraction(1))
    result = short_audit([RELEASE], 0.999, SeededSource(1), seconds=0.0)[1]
    assert not result.replay.passed
    assert "neighbours differ by 2 times the declared sensitivity" in result.faults


@pytest.mark.parametrize(
    "adjacency", [Adjacency(), *RELATIONS, Adjacency("replace-one", 3, weighted=True)]
)
def test_tables_at_random_are_neighbours(adjacency: Adjacency):
    pairs = at_random(replace(RELEASE, adjacency=adjacency))
    sizes = set()
    for _, pair in zip(range(60), pairs, strict=False):
        near, far = pair.near.dense(), pair.far.dense()
        more, less = np.maximum(far - near, 0).sum(), np.maximum(near - far, 0).sum()
        assert max(more, less) <= adjacency.most
        if adjacency.relation == "add-remove":
            assert less == 0
        if adjacency.public_rows:
            assert near.sum() == far.sum() == RELEASE.rows
        sizes.add(int(near.sum()))
    assert adjacency.public_rows or {0, 1} <= sizes


def test_noise_that_depends_on_the_data_is_found():
    """The same words give other noise where a table is another one."""

    class Dependent(DiscreteLaplace):
        def draw(self, statistic, source):
            drawn = super().draw(statistic, source)
            return Noisy(drawn.values + 4 * (statistic.values[0] % 2), None, drawn.reproducible)

    class Leaking(Histogram):
        @property
        def mechanism(self):
            return Dependent.within(self.share, self.domain.size, Fraction(2))

    found = replay(Leaking("l", TABLE, 9, Budget.of("1")), at_random(RELEASE))
    assert found.moved > 1


def test_the_tables_that_a_release_names_are_tried_first():
    release = replace(CASES["thresholded histogram"].release, rows=200)
    pairs = neighbouring_pairs(release.domain, 200, release.adjacency, release.worst_tables())
    assert pairs[0].description == "a cell at the threshold"
    counts = [pair.dense()[0] for pair in (pairs[0].near, pairs[0].far)]
    assert counts == [release.mechanism.threshold, release.mechanism.threshold + 1]
    assert tally_of(release.domain, (0,)).counts.sum() == 1


def test_ranks_at_a_gap_set_quantiles_far_apart():
    release = replace(CASES["quantiles"].release, rows=200)
    pairs = neighbouring_pairs(release.domain, 200, release.adjacency, release.worst_tables())
    gap = ReleaseDraws(release, pairs[0])
    usual = [ReleaseDraws(release, pair) for pair in pairs if "rank" not in pair.description]
    assert "at a gap" in pairs[0].description
    assert gap.distance() >= max(each.distance() for each in usual)
