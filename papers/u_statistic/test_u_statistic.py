"""Sums over pairs, against all pairs one by one; the proof, on every pair of draws; what is gained."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.advice.usable import relative_error
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from papers.u_statistic.kernels import largest, of_each, of_pairs
from papers.u_statistic.mechanism import PairLaplace
from papers.u_statistic.release import UStatistic
from tests.chance import most_failures
from tests.dpcore.releases.contract import drawn, tally_of

CODES = 16
KERNELS = {"variance": lambda x, y: (x - y) ** 2, "mean-difference": lambda x, y: np.abs(x - y)}
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def release(
    kernel: str, rows: int, gamma: str = "0", upper: float = CODES, cells: int = CODES
) -> UStatistic:
    share = Budget.of("1", "0.01" if gamma != "0" else 0, gamma)
    domain = Domain((Grid("x", 0.0, upper, cells),))
    return UStatistic("u", domain, rows, share, smooth=gamma != "0", kernel=kernel)


def table(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts and codes."""
    codes, counts = np.unique(records, return_counts=True)
    return counts, codes


@each_kernel
def test_sums_are_those_over_all_pairs(kernel):
    generator = np.random.default_rng(1)
    for _ in range(50):
        records = generator.integers(CODES, size=generator.integers(2, 40))
        pairs = KERNELS[kernel](records[:, None], records)
        counts, codes = table(records)
        by_code = {code: pairs[np.argmax(records == code)].sum() for code in codes}
        np.testing.assert_array_equal(of_each(kernel, counts, codes), list(by_code.values()))
        assert of_pairs(kernel, counts, codes) == pairs.sum() // 2
        assert pairs.max() <= largest(kernel, CODES)


@each_kernel
def test_what_is_published_is_the_usual_statistic(kernel):
    records = np.random.default_rng(2).integers(CODES, size=300)
    asked = release(kernel, 300, upper=100.0)
    values = (records + 0.5) * 100 / CODES
    exact = {
        "variance": values.var(ddof=1),
        "mean-difference": np.abs(values[:, None] - values).sum() / (300 * 299),
    }[kernel]
    estimate = asked._unit * asked.total(tally_of(asked.domain, records))
    assert estimate == pytest.approx(exact)
    even = tally_of(asked.domain, [0, CODES - 1] * 150)
    assert asked._unit * asked.total(even) == pytest.approx(asked._most)


@pytest.mark.slow
@each_kernel
def test_widths_of_neighbours_interlace_and_levels_differ_by_at_most_one(kernel):
    generator, moves, tight = np.random.default_rng(1), [], []
    for _ in range(500):
        rows = int(generator.integers(4, 12))
        records = generator.integers(CODES, size=rows) // generator.choice([1, 9])
        other = np.append(records[:-1], generator.choice([0, CODES - 1]))
        trimmed = int(generator.integers(1, 4))
        growth = Fraction(str(generator.choice([1.05, 1.3, 2.0])))
        noise = PairLaplace(CODES, CODES, rows, trimmed, Fraction(1), Fraction(1), growth, kernel)
        for near, far in permutations([table(records), table(other)]):
            closer, wider = noise.widths(*near)[:-1], noise.widths(*far)[1:]
            assert (closer <= wider).all()
            tight.append(min((wider - closer) / largest(kernel, CODES)))
        moves.append(abs(noise.level(*table(records)) - noise.level(*table(other))))
    assert max(moves) == 1
    assert min(tight) < 0.5


@pytest.mark.slow
@each_kernel
def test_a_random_replacement_is_not_covered_with_a_chance_of_at_most_gamma(kernel):
    """Given the n + 1 draws, any two of them are as likely to be the record and its replacement."""
    generator, worst, gamma = np.random.default_rng(2), 0.0, 0.25
    for _ in range(40):
        draws = (CODES * generator.beta(0.3, 3, size=20)).astype(int)
        draws[0] = CODES - 1
        asked = release(kernel, len(draws) - 1, str(gamma))
        assert asked.mechanism.trimmed == 1
        outside = []
        for gone, come in permutations(range(len(draws)), 2):
            both = [np.append(np.delete(draws, [gone, come]), draws[i]) for i in (gone, come)]
            sums = [of_pairs(kernel, *table(each)) for each in both]
            widths = [asked.mechanism.widths(*table(each))[0] for each in both]
            outside.append(abs(sums[0] - sums[1]) > min(widths))
            covered = asked.promises(*(tally_of(asked.domain, each) for each in both))
            assert covered or outside[-1]
        worst = max(worst, float(np.mean(outside)))
    assert 0 < worst <= gamma


@each_kernel
def test_the_verdict_is_about_the_error_beside_the_spread(kernel):
    asked, codes = release(kernel, 4000, upper=100.0, cells=100), np.arange(100)
    law = np.exp(-((codes - 50) ** 2) / (2 * 5.0**2))  # a twentieth of the range
    counts = np.round(4000 * law / law.sum()).astype(int)
    spread = (1 if kernel == "variance" else 2 / np.sqrt(np.pi)) * 5.0
    exact = asked._unit * of_pairs(kernel, counts, codes)
    noisy = exact + asked.mechanism.stddev * asked._unit
    moved = np.sqrt(noisy) - np.sqrt(exact) if kernel == "variance" else noisy - exact
    assert relative_error(asked) == pytest.approx(moved / spread, rel=0.15)


@pytest.mark.slow
@each_kernel
def test_intervals_hold(kernel):
    records = np.minimum(np.random.default_rng(3).poisson(2, size=4000), CODES - 1)
    for asked in (release(kernel, 4000), release(kernel, 4000, "0.05")):
        exact = asked._unit * asked.total(tally_of(asked.domain, records))
        shown = np.sqrt(exact) if kernel == "variance" else exact
        missed = 0
        for seed in range(200):
            columns = asked.publish(drawn(asked, records, seed)).tables[0].columns
            missed += not columns["lower_90"][0] <= shown <= columns["upper_90"][0]
        assert missed <= most_failures(200, 0.1)


def shares_of_plain(kernel: str, rows: int) -> tuple[float, float]:
    """The scale of the noise, and the median standard error that is published, over those of
    discrete-laplace: for log-normal incomes."""
    incomes = np.exp(np.random.default_rng(4).normal(np.log(30_000), 0.7, size=rows))
    records = np.rint(incomes.clip(0, 500_000) / 500).astype(int)
    domain = Domain((Grid("income", 0.0, 500_500.0, 1001),))
    share = Budget.of("1", "1e-6", "0.05")
    asked = UStatistic("u", domain, rows, share, smooth=True, kernel=kernel)
    scale = asked.mechanism.scale(asked.mechanism.level(*table(records)))
    errors = [asked._error(drawn(asked, records, seed))[0] for seed in range(100)]
    return float(scale / asked._plain.scale), float(np.median(errors)) / asked._plain.stddev


@pytest.mark.slow
def test_noise_follows_the_bulk_where_bounds_are_wide_and_records_are_many():
    """The figures of the page."""
    few, many = ([shares_of_plain(kernel, n) for kernel in KERNELS] for n in (2000, 10_000))
    assert [scale for scale, _ in few + many] == pytest.approx([1.01, 1.01, 0.095, 0.38], abs=0.005)
    assert [stated / scale for scale, stated in many] == pytest.approx([2, 2], rel=0.1)


def test_kendalls_tau_would_have_more_noise_than_discrete_laplace():
    """So there is no such kernel: the means of records, of which pairs are concordant, are far apart."""
    rows, gamma, part = 2000, 0.05, 0.9
    x, rest = np.random.default_rng(5).normal(size=(2, rows))
    for correlation in (0, 0.5, 0.8):
        y = correlation * x + np.sqrt(1 - correlation**2) * rest
        concordant = (x[:, None] - x) * (y[:, None] - y) > 0
        means = np.sort(concordant.sum(axis=1) / (rows - 1))
        trimmed = int(gamma * rows / 4)
        assert 2 / part * (means[rows - trimmed] - means[trimmed - 1]) > 1
