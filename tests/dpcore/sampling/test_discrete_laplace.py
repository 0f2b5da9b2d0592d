from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpcore.sampling.discrete_laplace import (
    LARGEST_SCALE,
    _coarsening,
    discrete_laplace,
    geometric,
    laplace_quantile,
    laplace_stddev,
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

SCALES = [Fraction(x) for x in ("1/5", "2/3", "2", "31.9", "32", "100/3", "200", "12345.6")] + [
    Fraction(2**20 + 1, 3),
    Fraction(2**40),
    Fraction(2**45),
]
SAMPLE = 200_000


def laplace_cdf(scale: float):
    def cdf(z):
        a = np.exp(-1 / scale)
        tail = np.exp(-np.where(z >= 0, z + 1, -z) / scale) / (1 + a)
        return np.where(z >= 0, 1 - tail, tail)

    return cdf


def geometric_cdf(scale: float):
    return lambda k: -np.expm1(-(k + 1.0) / scale) * (k >= 0)


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("law", ["laplace", "geometric"])
def test_the_law_is_the_stated_one_and_no_other_scale(scale: Fraction, law: str) -> None:
    sampler, cdf = {
        "laplace": (discrete_laplace, laplace_cdf),
        "geometric": (geometric, geometric_cdf),
    }[law]
    sample = sampler(scale, SAMPLE, SeededSource(11))
    assert fit(sample, cdf(float(scale))) > FALSE_ALARM
    assert fit(sample, cdf(float(scale) * 2 / 3)) < 1e-12
    assert fit(sample, cdf(float(scale) * 3 / 2)) < 1e-12


@pytest.mark.parametrize("scale", [Fraction(20), Fraction(40), Fraction(100)], ids=str)
def test_every_single_value_has_its_probability(scale: Fraction) -> None:
    """Also where two draws are put together, so that a seam between them would be seen."""
    reach = int(12 * scale)
    z = np.arange(-reach, reach + 1)
    a = np.exp(-1 / float(scale))
    sample = discrete_laplace(scale, 2 * SAMPLE, SeededSource(12))
    assert fit_each_value(sample, (1 - a) / (1 + a) * a ** abs(z), -reach) > FALSE_ALARM
    sample = geometric(scale, 2 * SAMPLE, SeededSource(13))
    assert fit_each_value(sample, (1 - a) * a ** np.arange(reach), 0) > FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(2**20), Fraction(2**45)], ids=str)
def test_low_digits_of_large_noise_are_uniform(scale: Fraction) -> None:
    sample = discrete_laplace(scale, SAMPLE, SeededSource(14))
    assert fit_each_value(sample % 64, np.full(64, 1 / 64), 0) > FALSE_ALARM
    assert fit_each_value((sample >> 8) % 64, np.full(64, 1 / 64), 0) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("scale", [2, 50])
def test_the_law_is_that_of_opendp(scale: int) -> None:
    """OpenDP has no seed: right samplers fail once in a million runs."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=float(scale))([0] * 20_000))
    assert same_law(theirs, discrete_laplace(scale, SAMPLE, SeededSource(15))) > FALSE_ALARM
    assert (
        same_law(theirs, discrete_laplace(Fraction(2 * scale, 3), SAMPLE, SeededSource(15))) < 1e-9
    )
    assert (
        same_law(theirs, discrete_laplace(Fraction(3 * scale, 2), SAMPLE, SeededSource(15))) < 1e-9
    )


@pytest.mark.parametrize("scale", [Fraction(100), Fraction(2**45)], ids=str)
def test_the_bits_that_refine_a_value_do_not_affect_its_acceptance(scale) -> None:
    shift = _coarsening(scale)
    low = 2**shift - 1
    with localcontext(prec=DIGITS):
        high = leading_digits(exp_minus(low / scale), 64 - shift)
        further = leading_digits(exp_minus(low / scale), 128 - shift) % 2**64
    refining = (high << shift) | low
    # The first word gives a coarse zero; the others leave the coin in doubt until the last of them.
    accepted = ScriptedSource([0, refining, further - 1])
    assert geometric(scale, 1, accepted).tolist() == [low]
    assert accepted.used == 3
    rejected = ScriptedSource([0, refining, further + 1, 0, 0])
    assert geometric(scale, 1, rejected).tolist() == [0]
    assert rejected.used == 5


def test_tiny_scales_give_zero_except_with_negligible_probability() -> None:
    for scale in (Fraction(1, 50), Fraction(1, 2**45)):
        assert not discrete_laplace(scale, 1000, SeededSource(16)).any()
        assert not geometric(scale, 1000, SeededSource(16)).any()


@pytest.mark.parametrize("size", [0, 1, 3, 2**13 - 1, 2**13, 2**13 + 1, 2**16 + 7])
@pytest.mark.parametrize("scale", [Fraction(2), Fraction(1000)])
def test_any_size(size: int, scale: Fraction) -> None:
    for sampler in (discrete_laplace, geometric):
        sample = sampler(scale, size, SystemSource())
        assert sample.shape == (size,)
        assert sample.dtype == np.int64


def test_nothing_is_drawn_for_an_empty_table() -> None:
    assert discrete_laplace(Fraction(500), 0, ScriptedSource([])).size == 0


def test_equal_words_give_equal_noise_whether_or_not_the_table_is_cached() -> None:
    first = discrete_laplace(Fraction(7, 3), 100, SeededSource(17))
    assert np.array_equal(first, discrete_laplace(Fraction(14, 6), 100, SeededSource(17)))


@pytest.mark.parametrize("sampler", [discrete_laplace, geometric])
def test_scales_that_are_not_exact_or_not_positive_are_refused(sampler) -> None:
    for scale in (2.0, "2", True, np.float64(1), None):
        with pytest.raises(TypeError, match="scale must be a Fraction"):
            sampler(scale, 1, SeededSource(0))
    for scale in (Fraction(0), -1, LARGEST_SCALE + 1):
        with pytest.raises(ValueError, match="scale must"):
            sampler(scale, 1, SeededSource(0))
    with pytest.raises(ValueError, match="size must not be negative"):
        sampler(1, -1, SeededSource(0))


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 2), Fraction(3), Fraction(90)])
def test_the_standard_deviation_is_that_of_the_pmf(scale: Fraction) -> None:
    z = np.arange(1, int(60 * scale) + 60)
    a = np.exp(-1 / float(scale))
    second_moment = 2 * float((z**2.0) @ a**z) * (1 - a) / (1 + a)
    assert laplace_stddev(scale) == pytest.approx(np.sqrt(second_moment), rel=1e-10)


def test_the_standard_deviation_of_large_noise_approaches_the_continuous_one() -> None:
    assert laplace_stddev(2**45) == pytest.approx(2**45 * np.sqrt(2), rel=1e-14)


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("level", [1e-9, 0.5, 0.95, 1 - 1e-12])
def test_the_quantile_is_the_smallest_that_covers(scale: Fraction, level: float) -> None:
    t = laplace_quantile(scale, level)
    a = np.exp(-1 / float(scale))

    def outside(t: int) -> float:  # P(|Z| > t)
        return 2 * np.exp(-(t + 1) / float(scale)) / (1 + a)

    assert outside(t) <= (1 - level) * (1 + 1e-9)
    assert t == 0 or outside(t - 1) > (1 - level) * (1 - 1e-9)


def test_the_quantile_of_scale_two_is_the_one_counted_by_hand() -> None:
    # a = 0.60653...: P(|Z| <= t) = 0.2449, 0.5420, 0.7222, 0.8315, ... for t = 0, 1, 2, 3
    assert [laplace_quantile(2, level) for level in (0.2, 0.3, 0.6, 0.8)] == [0, 1, 2, 3]
    for level in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="level"):
            laplace_quantile(2, level)
