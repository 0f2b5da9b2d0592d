"""Tables whose ends decline hold no records that only noise put there."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.post.tables.margins import Margin
from dpcore.releases.tables.microdata import Microdata
from dpcore.releases.tables.tailed import declining_ends, with_declining_ends
from dpcore.sampling.source import SeededSource

DAYS = Bins("days", (0.0, 1, 2, 3, 4, 5, 10, 20, *range(50, 366, 15), 366), integer=True)
WARD = Categories("ward", ("a", "b", "c"))
EXACT = np.array([*(470, 600, 550, 450, 350, 1000, 700, 200), *[0] * (DAYS.cells - 8)])


@pytest.mark.slow
def test_noise_in_empty_cells_makes_no_records():
    """Days in hospital, hardly any above 50: without the tail, noise makes the mean far too large."""
    domain = Domain((DAYS, WARD))
    counts = np.stack([EXACT // 2, EXACT // 3, EXACT - EXACT // 2 - EXACT // 3], axis=1)
    tally = Tally.of(domain, np.arange(counts.size), counts.ravel())
    release = Microdata("x", domain, int(counts.sum()), Budget(rho=Fraction(1, 800)), ((0, 1),))
    middles = np.array(DAYS.edges[:-1]) + np.diff(DAYS.edges) / 2
    true, means, before = np.average(middles, weights=EXACT), list[float](), list[float]()
    for seed in range(6):
        noisy = perturb(
            release.statistic(tally), release.mechanism, release.share, SeededSource(seed)
        )
        _, codes = release.sample(noisy, 5000)
        means.append(middles[codes[:, 0]].mean())
        modelled = np.maximum(release._modelled_margins(noisy)[0].table.sum(axis=1), 0)
        before.append(np.average(middles, weights=modelled))
    assert np.mean(means) == pytest.approx(true, rel=0.1)
    assert np.mean(before) > 1.3 * true


def test_cells_that_nobody_doubts_keep_their_counts():
    noisy = Margin((0,), EXACT + np.random.default_rng(3).normal(0, 1, len(EXACT)), 1.0)
    kinds = np.zeros(len(EXACT), dtype=np.int64)
    ends = declining_ends(DAYS, noisy, kinds)
    assert all((noisy.table[cells] < 210).all() for cells, _ in ends)
    found = with_declining_ends(noisy, {0: ends}, float(EXACT.sum())).table
    assert np.abs(found[:8] - EXACT[:8]).max() < 5
    assert found[8:].sum() < 10
    assert found.sum() == pytest.approx(EXACT.sum())


def test_a_tail_keeps_its_total_even_if_noise_hides_its_cells():
    generator, kinds, several = np.random.default_rng(0), np.zeros(len(EXACT), dtype=np.int64), 0
    for _ in range(40):
        noisy = Margin((0,), EXACT + generator.normal(0, 60, len(EXACT)), 3600.0)
        for cells, records in declining_ends(DAYS, noisy, kinds):
            assert (records >= 0).all()
            assert records.sum() == pytest.approx(max(noisy.table[cells].sum(), 0), abs=2)
            several += 1
    assert several > 20


def test_other_columns_are_distributed_in_a_tail_as_they_were_or_as_in_all_cells():
    cells, records = np.array([2, 3]), np.array([8.0, 2.0])
    table = Margin((0, 1), np.array([[50.0, 50], [30, 10], [12, 4], [-1, -2]]), 1.0)
    found = with_declining_ends(table, {0: [(cells, records)]}, 150.0).table
    assert found[2].tolist() == pytest.approx([6, 2])
    assert found[3].tolist() == pytest.approx([2 * 92 / 156, 2 * 64 / 156])
    assert found.sum() == pytest.approx(150)
    assert found[0, 0] / found[1, 1] == pytest.approx(5)
    assert with_declining_ends(table, {}, 150.0).table.tolist() == table.table.tolist()


def test_a_null_and_a_point_mass_are_in_no_tail():
    axis = Bins("x", tuple(map(float, range(13))), nullable=True, masses=(11.0,))
    counts = np.array([900.0, 500, 200, 50, 9, -3, 4, 2, -6, 1, 0, 40, 3])
    kinds = np.array([0] * 11 + [1, 2])
    ends = declining_ends(axis, Margin((0,), counts, 100.0), kinds)
    assert ends
    assert not {11, 12} & {int(cell) for cells, _ in ends for cell in cells}
