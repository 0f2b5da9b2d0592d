from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from dpcore.sampling import discrete_gaussian as discrete_gaussian_module
from dpcore.sampling.discrete_gaussian import (
    LARGEST_VARIANCE,
    _coarsening,
    discrete_gaussian,
    gaussian_quantile,
    gaussian_stddev,
)
from dpcore.sampling.source import SeededSource, SystemSource
from tests.chance import FALSE_ALARM
from tests.dpcore.sampling.sampling_oracles import (
    DIGITS,
    ScriptedSource,
    exp_minus,
    fit,
    fit_each_value,
    leading_digits,
    same_law,
)

SIGMAS = [Fraction(x) for x in ("2/5", "1", "5/3", "20", "32", "32.01", "100", "9999.5")] + [
    Fraction(2**20 + 1, 3),
    Fraction(2**40),
    Fraction(2**45),
]
SAMPLE = 200_000


def gaussian_cdf(sigma: float):
    def cdf(z):
        if sigma > 200:  # the midpoint rule, off by less than 1 / sigma**2
            return special.ndtr((z + 0.5) / sigma)
        support = np.arange(-int(12 * sigma) - 9, int(12 * sigma) + 10)
        weights = np.exp(-(support**2) / (2 * sigma**2))
        sums = np.cumsum(weights) / weights.sum()
        return sums[np.clip(z - support[0], 0, support.size - 1)]

    return cdf


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_the_law_is_the_stated_one_and_no_other_scale(sigma: Fraction) -> None:
    sample = discrete_gaussian(sigma**2, SAMPLE, SeededSource(21))
    assert fit(sample, gaussian_cdf(float(sigma))) > FALSE_ALARM
    assert fit(sample, gaussian_cdf(float(sigma) * 2 / 3)) < 1e-12
    assert fit(sample, gaussian_cdf(float(sigma) * 3 / 2)) < 1e-12


@pytest.mark.parametrize("variance", [Fraction(3), Fraction(900), Fraction(4000), Fraction(10000)])
def test_every_single_value_has_its_probability(variance: Fraction) -> None:
    """Also where two draws are put together, so that a seam between them would be seen."""
    sigma = float(variance) ** 0.5
    reach = int(12 * sigma)
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-(z**2) / (2 * sigma**2))
    sample = discrete_gaussian(variance, 2 * SAMPLE, SeededSource(22))
    assert fit_each_value(sample, weights / weights.sum(), -reach) > FALSE_ALARM


@pytest.mark.parametrize("sigma", [2**20, 2**45])
def test_low_digits_of_large_noise_are_uniform(sigma: int) -> None:
    sample = discrete_gaussian(sigma**2, SAMPLE, SeededSource(23))
    assert fit_each_value(sample % 64, np.full(64, 1 / 64), 0) > FALSE_ALARM
    assert fit_each_value((sample >> 8) % 64, np.full(64, 1 / 64), 0) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [3, 60])
def test_the_law_is_that_of_opendp(sigma: int) -> None:
    """OpenDP has no seed: right samplers fail once in a million runs."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    theirs = np.array(dp.m.make_gaussian(*space, scale=float(sigma))([0] * 20_000))
    assert same_law(theirs, discrete_gaussian(sigma**2, SAMPLE, SeededSource(24))) > FALSE_ALARM
    for wrong in (Fraction(2, 3), Fraction(3, 2)):
        ours = discrete_gaussian((wrong * sigma) ** 2, SAMPLE, SeededSource(24))
        assert same_law(theirs, ours) < 1e-9


@pytest.mark.parametrize("sigma", [100, 2**45])
def test_an_acceptance_in_doubt_is_decided_by_the_exact_exponent(sigma: int) -> None:
    shift = _coarsening(Fraction(sigma**2))
    low = 2**shift - 1
    value = 2**shift * 40 + low  # its square does not fit into int64 for the larger sigma
    coarse = discrete_gaussian_module._table(Fraction(sigma**2, 4**shift), False)._words[39] + 1
    exponent = Fraction(value**2 - (2**shift * 40) ** 2, 2 * sigma**2)
    with localcontext(prec=DIGITS):
        high = leading_digits(exp_minus(exponent), 64 - shift)
        further = leading_digits(exp_minus(exponent), 128 - shift) % 2**64
    refining = (high << shift) | low
    plus, minus = 0, 2**64 - 1
    for sign_word, sign in ((plus, 1), (minus, -1)):
        source = ScriptedSource([int(coarse), refining, further - 1, sign_word])
        assert discrete_gaussian(sigma**2, 1, source).tolist() == [sign * value]
    source = ScriptedSource([int(coarse), refining, further + 1, int(coarse), low, plus])
    assert discrete_gaussian(sigma**2, 1, source).tolist() == [value]
    assert source.used == 6


def test_zero_is_rejected_once_for_its_second_sign() -> None:
    minus, plus = 2**64 - 1, 0
    source = ScriptedSource([0, 0, minus, 0, 0, plus])
    assert discrete_gaussian(10**4, 1, source).tolist() == [0]
    assert source.used == 6


def test_tiny_sigmas_give_zero_except_with_negligible_probability() -> None:
    for variance in (Fraction(1, 400), Fraction(1, 2**90)):
        assert not discrete_gaussian(variance, 1000, SeededSource(25)).any()


@pytest.mark.parametrize("size", [0, 1, 3, 2**13 - 1, 2**13, 2**13 + 1, 2**16 + 7])
@pytest.mark.parametrize("variance", [Fraction(2), Fraction(10**6)])
def test_any_size(size: int, variance: Fraction) -> None:
    sample = discrete_gaussian(variance, size, SystemSource())
    assert sample.shape == (size,)
    assert sample.dtype == np.int64


def test_nothing_is_drawn_for_an_empty_table() -> None:
    assert discrete_gaussian(Fraction(10**6), 0, ScriptedSource([])).size == 0


def test_variances_that_are_not_exact_or_not_positive_are_refused() -> None:
    for variance in (2.0, "2", True, np.float64(1), None):
        with pytest.raises(TypeError, match="variance must be a Fraction"):
            discrete_gaussian(variance, 1, SeededSource(0))
    for variance in (Fraction(0), -1, LARGEST_VARIANCE + 1):
        with pytest.raises(ValueError, match="variance must"):
            discrete_gaussian(variance, 1, SeededSource(0))
    with pytest.raises(ValueError, match="size must not be negative"):
        discrete_gaussian(1, -1, SeededSource(0))


@pytest.mark.parametrize("variance", ["1/400", "1/9", "1", "3.99", "4", "5", "1000"])
def test_the_standard_deviation_is_that_of_the_pmf(variance: str) -> None:
    v = float(Fraction(variance))
    z = np.arange(-600, 601)
    weights = np.exp(-(z**2) / (2 * v))
    exact = np.sqrt((weights @ z**2.0) / weights.sum())
    assert gaussian_stddev(Fraction(variance)) == pytest.approx(exact, rel=1e-12)
    assert gaussian_stddev(Fraction(variance)) <= np.sqrt(v)


@pytest.mark.parametrize("sigma", [0.05, 0.6, 1, 2.5, 31, 999, 1001, 3000])
@pytest.mark.parametrize("level", [1e-6, 0.5, 0.95, 1 - 1e-10])
def test_the_quantile_is_the_smallest_that_covers(sigma: float, level: float) -> None:
    t = gaussian_quantile(Fraction(sigma) ** 2, level)
    z = np.arange(int(30 * sigma) + 30)
    weights = np.exp(-(z**2) / (2 * sigma**2)) * np.where(z > 0, 2, 1)
    outside = np.append(np.cumsum(weights[:0:-1])[::-1], 0.0) / weights.sum()  # P(|Z| > t)
    assert outside[t] <= (1 - level) * (1 + 1e-9)
    assert t == 0 or outside[t - 1] > (1 - level) * (1 - 1e-9)


def test_the_quantile_of_large_noise_approaches_the_continuous_one() -> None:
    assert gaussian_quantile(2**90, 0.95) / 2**45 == pytest.approx(1.959963984540054, rel=1e-12)
