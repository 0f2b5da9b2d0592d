"""Records drawn from a smoothed histogram: exact laws, exact loss, honest counts."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.errors import PrivacyLineError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Statistic
from dpcore.sampling.source import SeededSource
from papers.sampled_histogram.mechanism import Sampled
from papers.sampled_histogram.release import SampledHistogram
from papers.sampled_histogram.urn import uniform_below, urn_draws
from tests.chance import FALSE_ALARM
from tests.dpcore.releases.contract import tally_of

URNS = ("smoothed-histogram", "dirichlet-multinomial")
both = pytest.mark.parametrize("urn", URNS)
PLACE = Domain((Categories("place", tuple("abcde")),))


def law(counts: tuple[int, ...], mechanism: Sampled) -> dict[tuple[int, ...], Fraction]:
    """The chance of every sequence of cells that the draws can be, from the definition."""
    chances = {}
    for sequence in product(range(len(counts)), repeat=mechanism.draws):
        chance, urn = Fraction(1), [c + mechanism.concentration for c in counts]
        for cell in sequence:
            chance *= urn[cell] / sum(urn)
            urn[cell] += mechanism.urn == "dirichlet-multinomial"
        chances[sequence] = chance
    return chances


@both
@pytest.mark.parametrize("alpha", ["0.3", "1", "4"])
def test_over_all_neighbours_and_outcomes_the_loss_is_alpha_and_no_less(urn, alpha):
    rows, mechanism = 3, Sampled.within(Budget.of(alpha), 3, 3, 3, urn)
    worst = 0.0
    for shared in combinations_with_replacement(range(3), rows - 1):
        tables = [tuple(np.bincount([*shared, c], minlength=3).tolist()) for c in range(3)]
        laws = [law(table, mechanism) for table in tables]
        for one, other in product(laws, repeat=2):
            worst = max(worst, *(math.log(one[o] / other[o]) for o in one))
    assert 0.999 * float(alpha) < worst <= float(alpha) * (1 + 1e-12)


@both
def test_draws_follow_the_definition(urn):
    mechanism = Sampled.within(Budget.of("2"), 3, 4, 3, urn)
    chances: Counter = Counter()
    for sequence, chance in law((1, 0, 3), mechanism).items():
        chances[tuple(np.bincount(sequence, minlength=3).tolist())] += chance
    drawn = mechanism.draw(Statistic(np.tile([1, 0, 3], 20_000)), SeededSource(3)).values
    seen = Counter(map(tuple, drawn.reshape(-1, 3).tolist()))
    assert set(seen) <= set(chances)
    keys = sorted(chances)
    expected = [20_000 * float(chances[k]) for k in keys]
    assert stats.chisquare([seen[k] for k in keys], expected).pvalue > FALSE_ALARM
    flat = [20_000 / len(keys)] * len(keys)
    assert stats.chisquare([seen[k] for k in keys], flat).pvalue < 1e-9


def test_many_polya_draws_have_the_moments_of_a_dirichlet_multinomial():
    counts, source = np.array([50, 0, 10]), SeededSource(5)
    urn = np.array([4 * 50 + 8, 8, 48])
    counts = np.tile(counts, (3000, 1))
    drawn = urn_draws(counts, 4, 8, 200, source, polya=True)
    beta = stats.betabinom(200, urn / 4, (urn.sum() - urn) / 4)
    assert drawn.sum(axis=1).tolist() == [200] * 3000
    assert drawn.mean(axis=0) == pytest.approx(beta.mean(), rel=0.02)
    assert drawn.std(axis=0) == pytest.approx(beta.std(), rel=0.05)
    single = urn_draws(counts, 4, 8, 200, source, polya=False)
    assert single.std(axis=0) == pytest.approx(stats.binom(200, urn / urn.sum()).std(), rel=0.05)


def test_bounded_integers_are_uniform_below_each_bound():
    bounds = np.tile(np.array([1, 3, 2**62]), 6000)
    drawn = uniform_below(bounds, SeededSource(1))
    assert (drawn < bounds).all()
    assert (drawn >= 0).all()
    assert stats.chisquare(np.bincount(drawn[1::3])).pvalue > FALSE_ALARM
    assert stats.kstest(drawn[2::3] / 2**62, "uniform").pvalue > FALSE_ALARM
    for faulty in ([0], [2**62 + 1]):
        with pytest.raises(ValueError, match="bounds"):
            uniform_below(np.array(faulty), SeededSource(1))


@pytest.mark.slow
@both
def test_counts_are_unbiased_and_their_error_is_the_stated_one(urn):
    records = np.repeat(np.arange(5), (400, 300, 200, 90, 10))
    release = SampledHistogram("s", PLACE, 1000, Budget.of("2"), 400, urn)
    exact = release.statistic(tally_of(PLACE, records))
    tables = [
        release.publish(perturb(exact, release.mechanism, release.share, SeededSource(i))).tables[0]
        for i in range(600)
    ]
    counts = np.array([t.columns["noisy_count"] for t in tables])
    stated = np.array([t.columns["standard_error"] for t in tables])
    truth = np.array([400, 300, 200, 90, 10])
    standard = counts.std(axis=0)
    # Five standard errors and more: of a mean, of a spread, and of nine in ten.
    assert (np.abs(counts.mean(axis=0) - truth) < 5.3 * standard / math.sqrt(600)).all()
    assert np.sqrt((stated**2).mean(axis=0)) == pytest.approx(standard, rel=0.16)
    low, high = (np.array([t.columns[c] for t in tables]) for c in ("lower_90", "upper_90"))
    held = ((low <= truth) & (truth <= high)).mean(axis=0)
    assert (held > 0.83).all()


@both
def test_edges(urn):
    for records, size in (((), 5), ((2,), 1), ((0,) * 30, 30)):
        release = SampledHistogram("s", PLACE, max(len(records), 1), Budget.of("1"), 7, urn)
        exact = release.statistic(tally_of(PLACE, records))
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(size))
        assert noisy.values.sum() == 7
        assert release.sample(noisy, 7)[1].shape == (7, 1)
        with pytest.raises(PrivacyLineError, match="no price"):
            perturb(exact, release.mechanism, Budget.of("0.99"), SeededSource(1))
    with pytest.raises(ValueError, match="more than this mechanism can use"):
        Sampled.within(Budget.of("1000"), 5, 10, 1, urn)
    alone = Sampled.within(Budget.of("1"), 1, 10, 4, urn)
    assert alone.draw(Statistic(np.array([10])), SeededSource(1)).values.tolist() == [4]
