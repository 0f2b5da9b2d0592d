"""Synthetic records by Kolmogorov-Smirnov distance: exact law, exact loss, stated distance."""

import math
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.audit.short import audit_seconds
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Statistic
from dpcore.sampling.source import SeededSource, SystemSource
from papers.near_records.by_distribution import _law
from papers.near_records.paths import NearSequences, uniform_integer
from papers.near_records.release import NearRecords, NearSeries
from tests.chance import FALSE_ALARM, most_failures
from tests.dpcore.releases.contract import tally_of


def score(counts: tuple[int, ...], sequence: tuple[int, ...]) -> int:
    """floor(n sup |F_x - F_z|), from the definition."""
    n, k = sum(counts), len(sequence)
    ends = range(len(counts))
    return math.floor(
        n
        * max(
            abs(Fraction(sum(counts[: j + 1]), n) - Fraction(sum(c <= j for c in sequence), k))
            for j in ends
        )
    )


def log_law(counts: tuple[int, ...], draws: int, scale: float) -> dict[tuple[int, ...], float]:
    """The logarithm of the chance of every ordered sequence."""
    sequences = list(product(range(len(counts)), repeat=draws))
    logs = np.array([-score(counts, sequence) / scale for sequence in sequences])
    return dict(zip(sequences, logs - np.logaddexp.reduce(logs), strict=True))


def histograms(law: dict[tuple[int, ...], float], cells: int) -> Counter:
    chances: Counter = Counter()
    for sequence, log in law.items():
        chances[tuple(np.bincount(sequence, minlength=cells).tolist())] += math.exp(log)
    return chances


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "rows", "draws"), [(3, 3, 2), (2, 3, 5), (4, 2, 2)])
def test_over_all_neighbours_and_outcomes_the_loss_is_alpha_at_most(cells, rows, draws):
    scale, worst = 2.0, 0.0
    for shared in combinations_with_replacement(range(cells), rows - 1):
        tables = [tuple(np.bincount([*shared, c], minlength=cells).tolist()) for c in range(cells)]
        laws = [log_law(table, draws, scale) for table in tables]
        for one, other in product(laws, repeat=2):
            worst = max(worst, *(one[z] - other[z] for z in one))
            moved = [abs(score(a, z) - score(b, z)) for a in tables for b in tables for z in one]
            assert max(moved) <= 1
    assert 0.5 / scale < worst <= 2 / scale


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "draws"),
    [((1, 0, 3), 3), ((2, 1), 6), ((7,), 3)],
)
def test_draws_follow_the_definition_and_not_two_thirds_nor_three_halves_of_the_scale(
    counts, draws
):
    scale, times, source = Fraction(3, 2), 20_000, SeededSource(4)
    near = NearSequences(np.array(counts), draws, scale)
    seen = Counter(tuple(near.sequence(source).tolist()) for _ in range(times))

    def fit(stretch: float) -> float:
        law = histograms(log_law(counts, draws, float(scale) * stretch), len(counts))
        assert set(seen) <= set(law)
        expected = np.array([law[z] for z in law])
        return stats.chisquare([seen[z] for z in law], expected / expected.sum() * times).pvalue

    if len(counts) == 1:
        assert seen == {(draws,): times}
        return
    assert fit(1) > FALSE_ALARM
    if sum(counts) > 1:
        assert fit(2 / 3) < 1e-9
        assert fit(3 / 2) < 1e-9


@pytest.mark.parametrize(("counts", "draws"), [((1, 0, 3), 3), ((2, 5, 1), 4)])
def test_bands_are_counted_as_the_definition_does(counts, draws):
    near = NearSequences(np.array(counts), draws, Fraction(2))
    scores = [score(counts, z) for z in product(range(len(counts)), repeat=draws)]
    for level in range(sum(counts) + 1):
        assert near.number(level) == sum(s <= level for s in scores)


@pytest.mark.slow
def test_a_huge_alpha_draws_the_nearest_records_and_none_at_all_draws_evenly():
    counts = np.array([10, 20, 10])
    nearest = NearSequences(counts, 4, Fraction(1, 1000))
    assert nearest.sequence(SeededSource(1)).tolist() == [1, 2, 1]
    far = NearSequences(np.array([4_900, 5_100]), 1, Fraction(1, 100))
    assert far.sequence(SeededSource(1)).tolist() == [0, 1]
    assert (
        max(weights.digits for weights in far._weights.values()) < 1000
    )  # not those of exp(-490,000)
    even = NearSequences(counts, 300, Fraction(10**6))
    assert stats.chisquare(even.sequence(SeededSource(1))).pvalue > FALSE_ALARM


def test_uniform_integers_of_any_size():
    source = SeededSource(6)
    assert uniform_integer(1, source) == 0
    drawn = [uniform_integer(5, source) for _ in range(5000)]
    assert stats.chisquare(np.bincount(drawn, minlength=5)).pvalue > FALSE_ALARM
    huge = 3 << 200
    assert (
        stats.kstest([uniform_integer(huge, source) / huge for _ in range(2000)], "uniform").pvalue
        > FALSE_ALARM
    )


def release(rows: int = 400, draws: int = 12, alpha: str = "2", bins: int = 8) -> NearRecords:
    edges = tuple(float(edge) for edge in range(bins + 1))
    return NearRecords("n", Domain((Bins("x", edges),)), rows, Budget.of(alpha), draws)


@pytest.mark.parametrize("where", ["one cell", "both ends"])
def test_the_stated_distance_holds(where: str):
    records = {"one cell": [3] * 400, "both ends": [0, 7] * 200}[where]
    exact = release().statistic(tally := tally_of(release().domain, np.array(records)))
    ends, source, within = np.cumsum(tally.dense()) / 400, SeededSource(3), 0
    assert release().distance < 0.2
    for _ in range(50):
        noisy = perturb(exact, release().mechanism, release().share, source)
        assert noisy.values.sum() == 12
        within += np.abs(np.cumsum(noisy.values) / 12 - ends).max() <= release().distance
    assert 50 - within <= most_failures(50, 0.1)


@pytest.mark.slow
def test_what_takes_long_is_announced_and_drawn_again_at_once():
    """Counting takes most of the time, and once for a table; a draw looks at few of its levels."""
    release = NearRecords("n", Domain((Bins("x", (0.0, 1, 2)),)), 20_000, Budget.of("1e-4"), 1)
    tally, source = tally_of(release.domain, np.zeros(20_000, dtype=np.int64)), SeededSource(5)
    spent = []
    for times in (1, 1000):
        start = time.process_time()
        release.mechanism.repeat(Statistic(tally.dense()), times, source)
        spent.append(time.process_time() - start)
    assert spent[1] < 3 * spent[0]
    assert release.preparation.seconds / 10 < spent[0] < 10 * release.work.seconds
    again = audit_seconds([release]) - audit_seconds([replace(release, share=Budget.of(8))])
    assert again > 3 * release.preparation.seconds


def test_what_it_cannot_draw_is_refused():
    with pytest.raises(ValueError, match="draws: too many"):
        _ = release(rows=10**6, draws=2000).mechanism
    with pytest.raises(ValueError, match="must be at least 1"):
        _ = release(draws=0).mechanism
    with pytest.raises(ValueError, match="must be numeric and without nulls"):
        NearRecords("n", Domain((Categories("x", ("a", "b")),)), 5, Budget.of(1), 2)


def series(rows: int = 4000, draws: int = 40, alpha: str = "2", terms: int = 3) -> NearSeries:
    edges = tuple(float(edge) for edge in range(65))
    return NearSeries("n", Domain((Bins("x", edges),)), rows, Budget.of(alpha), draws, terms)


@pytest.mark.slow
def test_the_series_of_the_drawn_records_is_within_the_stated_distance():
    release = series()
    places = stats.beta(1.5, 1.5).ppf((np.arange(4000) + 0.5) / 4000)  # at most 1.3 times even
    tally = tally_of(release.domain, (places * 64).astype(int))
    features = release.mechanism.features / 2.0**16
    exact, source, found = tally.dense() @ features / 4000, SeededSource(3), []
    for _ in range(30):
        noisy = perturb(release.statistic(tally), release.mechanism, release.share, source)
        assert noisy.values.sum() == 40
        found.append(((noisy.values @ features / 40 - exact) ** 2).sum())
    assert np.sum(np.array(found) > release.distance) <= most_failures(30, 0.1)
    assert release.distance < release.mechanism.l2_sensitivity_squared / 4.0**16
    assert np.median(found) < release.distance / 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"terms": 64}, "terms: must be at least 1 and below 64, the cells, not 64"),
        ({"terms": 0}, "terms: must be at least 1 and below 64, the cells, not 0"),
        ({"terms": 16, "rows": 10**9}, "terms: too many for 1000000000 rows"),
        ({"terms": 1, "draws": 1, "rows": 10**7}, "terms: too many for 10000000 rows"),
        ({"draws": 0}, "must be at least 1"),
        ({"share": Budget()}, "alpha must be positive"),
    ],
)
def test_a_series_that_cannot_be_drawn_is_refused(change: dict[str, object], says: str):
    with pytest.raises(ValueError, match=says):
        _ = replace(series(), **change).mechanism


WIDE_LAWS = [
    ((500, 500), 40, 2 / Fraction("0.093")),
    ((3, 0, 97), 12, Fraction(1, 2)),
    ((1, 1), 1, Fraction(400)),
    ((60, 40, 20), 6, Fraction(3)),
]


@pytest.mark.parametrize(("counts", "draws", "scale"), WIDE_LAWS)
@pytest.mark.parametrize("bits", [1, 300])
def test_the_chance_of_every_level_is_enclosed_over_the_whole_range(counts, draws, scale, bits):
    """Levels beyond those that hold nearly all sequences have a chance of their own."""
    law = NearSequences(np.array(counts), draws, scale)
    numbers = [law.number(0)]
    while numbers[-1] < len(counts) ** draws:
        numbers.append(law.number(len(numbers)))
    with mpmath.workdps(600):
        rate = mpmath.mpf(scale.denominator) / scale.numerator
        steps = [mpmath.exp(-t * rate) - mpmath.exp(-(t + 1) * rate) for t in range(len(numbers))]
        parts = [step * number for step, number in zip(steps, numbers, strict=True)]
        whole = mpmath.fsum(parts) + mpmath.exp(-len(numbers) * rate) * numbers[-1]
        exact = mpmath.mpf(0)
        for level, part in enumerate(parts[:-1]):
            exact += part
            low, high = law._chance(level, bits)
            assert low <= exact / whole * 2**bits <= high
            assert high - low <= 4


def test_no_count_of_a_survey_stays_in_memory_after_its_draw():
    of = release()
    exact = of.statistic(tally_of(of.domain, np.zeros(of.rows, dtype=np.int64)))
    _law.cache_clear()
    perturb(exact, of.mechanism, of.share, SystemSource())
    assert _law.cache_info().currsize == 0
    perturb(exact, of.mechanism, of.share, SeededSource(1))
    assert _law.cache_info().currsize == 1
