"""Releases over more cells than a number holds count, move and are audited like any others."""

from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import neighbouring_pairs
from dpcore.audit.fuzz import fuzzed_pairs
from dpcore.audit.replay import replay
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import PrivacyLineError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact
from dpcore.post.tables.margins import margins_of
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.tables import compression
from dpcore.releases.tables.allocation import Allocation
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from tests.conftest import those_slow
from tests.dpcore.releases.contract import opened

DOMAIN = Domain(
    (
        *(Categories(f"q{i}", ("no", "yes"), nullable=i % 3 == 0) for i in range(40)),
        Bins("age", (0.0, 5.0, 9.0, 20.0)),
        *(Categories(f"job {i}", tuple(range(12))) for i in range(4)),
    )
)
ROWS, SHARE = 50, Budget.of("1", "1e-6")
SETS = (*((i,) for i in range(45)), *combinations(range(35, 45), 2), (0, 20, 40))
RELEASES: dict[str, Any] = {
    "equal margins": MarginTables("m", DOMAIN, ROWS, SHARE, sets=SETS),
    "margins": MarginTables(
        "m", DOMAIN, ROWS, SHARE, sets=SETS, noise="discrete-gaussian", aim="balanced"
    ),
    "pairs": Microdata("m", DOMAIN, ROWS, SHARE, noise="discrete-gaussian", aim="records"),
    "groups": CompressedMicrodata("m", DOMAIN, ROWS, SHARE, noise="discrete-gaussian", keep=4),
}


def at_random(release):
    generator = np.random.default_rng(1)
    return fuzzed_pairs(release.domain, release.rows, release.adjacency, generator)


def test_the_domain_is_one_that_no_number_holds():
    assert len(DOMAIN.words) == 2


def test_all_tables_are_those_of_the_records():
    codes = np.random.default_rng(1).integers(0, DOMAIN.shape, (ROWS, len(DOMAIN.axes)))
    tally = Tally.of(DOMAIN, DOMAIN.pack(codes))
    expected = margins_of(codes, DOMAIN.shape, SETS)
    found = opened(RELEASES["equal margins"], tally)
    np.testing.assert_array_equal(found, np.concatenate([table.ravel() for table in expected]))


@pytest.mark.parametrize("name", those_slow(["margins", "groups", "pairs"], ["pairs"]))
@pytest.mark.parametrize(
    "adjacency",
    [Adjacency(), Adjacency("add-remove", 2)],
    ids=str,
)
def test_no_neighbour_moves_a_wide_release_by_more_than_it_declares(
    name: str, adjacency: Adjacency
):
    release = replace(RELEASES[name], adjacency=adjacency)
    tried = neighbouring_pairs(DOMAIN, ROWS, adjacency)
    for pairs in (tried, at_random(release)):
        found = replay(release, islice(pairs, 12))
        assert found.passed, found
        assert found.moved > 0.45


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_a_fault_of_the_sensitivity_of_a_wide_release_is_found(name: str, monkeypatch):
    release = replace(RELEASES[name])
    of_groups = compression, "_sensitivity"
    holder, called = of_groups if name == "groups" else (Allocation, "sensitivity")
    right = getattr(holder, called)

    def wrong(*of):
        return right(*of) / 4

    monkeypatch.setattr(holder, called, wrong)
    assert not replay(release, neighbouring_pairs(DOMAIN, ROWS)[:4]).passed


def test_cells_of_another_form_do_not_cross_the_privacy_line():
    release = RELEASES["groups"]
    cells, counts = DOMAIN.at([5, 2**70]), np.array([20, 30])
    perturb(Exact(counts, cells), release.mechanism, SHARE, SeededSource(1))
    beyond = np.array([[0, 5], [0, DOMAIN.words[1]]])
    for wrong in (
        cells[::-1],
        cells[:, :1],
        cells[:, 0],
        np.repeat(cells[:1], 2, 0),
        -cells,
        beyond,
    ):
        with pytest.raises(PrivacyLineError, match="ascending public cells"):
            perturb(Exact(counts, wrong), release.mechanism, SHARE, SeededSource(1))


def test_what_numbers_every_cell_is_refused():
    with pytest.raises(ValueError, match=r"columns: .* more than the 2\^62 .*microdata-margins"):
        ThresholdedHistogram("h", DOMAIN, ROWS, Budget.of("1"))
    with pytest.raises(ValueError, match="too many to publish one by one"):
        assert Histogram("h", DOMAIN, ROWS, Budget.of("1")).mechanism
    one = Domain((Grid("x", 0.0, 1.0, 2**62),))
    assert ThresholdedHistogram("h", one, ROWS, Budget.of("1")).mechanism.size == 2**62
