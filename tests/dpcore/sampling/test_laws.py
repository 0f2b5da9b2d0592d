"""Discrete Laplace, geometric and discrete Gaussian noise have their laws, exactly, at every scale."""

from collections.abc import Callable
from decimal import localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import special

from dpcore.arrays import Floats, Integers
from dpcore.sampling import discrete_gaussian as gaussian_module
from dpcore.sampling import discrete_laplace as laplace_module
from dpcore.sampling.discrete_gaussian import (
    LARGEST_VARIANCE,
    discrete_gaussian,
    gaussian_quantile,
    gaussian_stddev,
)
from dpcore.sampling.discrete_laplace import (
    LARGEST_SCALE,
    discrete_laplace,
    geometric,
    laplace_quantile,
    laplace_stddev,
)
from dpcore.sampling.source import RandomSource, SeededSource, SystemSource
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

SAMPLE = 200_000
LARGE = [Fraction(2**20 + 1, 3), Fraction(2**40), Fraction(2**45)]
SCALES = [
    *map(Fraction, ("2/5", "2/3", "2", "31.9", "32", "100/3", "200", "12345.6")),
    *LARGE,
]


def gaussian(scale: Fraction, size: int, source: RandomSource) -> Integers:
    """By sigma, as the others are by their scale."""
    return discrete_gaussian(scale**2, size, source)


SAMPLERS: dict[str, Callable[[Fraction, int, RandomSource], Integers]] = {
    "laplace": discrete_laplace,
    "geometric": geometric,
    "gaussian": gaussian,
}
every_law = pytest.mark.parametrize("law", SAMPLERS)
both_laws = pytest.mark.parametrize("law", ["laplace", "gaussian"])


def cdf(law: str, scale: float, z: Integers) -> Floats:
    if law == "geometric":
        return -np.expm1(-(z + 1.0) / scale) * (z >= 0)
    if law == "laplace":
        tail = np.exp(-np.where(z >= 0, z + 1, -z) / scale) / (1 + np.exp(-1 / scale))
        return np.where(z >= 0, 1 - tail, tail)
    if scale > 200:  # the midpoint rule, off by less than 1 / sigma**2
        return special.ndtr((z + 0.5) / scale)
    support = np.arange(-int(12 * scale) - 9, int(12 * scale) + 10)
    sums = np.cumsum(pmf(law, scale, support))
    return sums[np.clip(z - support[0], 0, support.size - 1)]


def pmf(law: str, scale: float, z: Integers) -> Floats:
    weights = np.exp(-(z**2) / (2 * scale**2) if law == "gaussian" else -np.abs(z) / scale)
    return weights * (z >= 0 if law == "geometric" else 1) / weights.sum()


@pytest.mark.parametrize("scale", SCALES, ids=str)
@every_law
def test_the_law_is_the_stated_one_and_no_other_scale(scale: Fraction, law: str):
    sample = SAMPLERS[law](scale, SAMPLE, SeededSource(11))
    assert fit(sample, partial(cdf, law, float(scale))) > FALSE_ALARM
    assert fit(sample, partial(cdf, law, float(scale) * 2 / 3)) < 1e-12
    assert fit(sample, partial(cdf, law, float(scale) * 3 / 2)) < 1e-12


@pytest.mark.parametrize("scale", [Fraction(20), Fraction(40), Fraction(100)], ids=str)
@every_law
def test_every_single_value_has_its_probability(scale: Fraction, law: str):
    """Also where two draws are put together, so that a seam between them would be seen."""
    reach = int(12 * scale)
    first = 0 if law == "geometric" else -reach
    sample = SAMPLERS[law](scale, 2 * SAMPLE, SeededSource(12))
    chances = pmf(law, float(scale), np.arange(first, reach + 1))
    assert fit_each_value(sample, chances, first) > FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(2**20), Fraction(2**45)], ids=str)
@both_laws
def test_low_digits_of_large_noise_are_uniform(scale: Fraction, law: str):
    sample = SAMPLERS[law](scale, SAMPLE, SeededSource(14))
    assert fit_each_value(sample % 64, np.full(64, 1 / 64), 0) > FALSE_ALARM
    assert fit_each_value((sample >> 8) % 64, np.full(64, 1 / 64), 0) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("scale", [2, 50])
@both_laws
def test_the_law_is_that_of_opendp(scale: int, law: str):
    """OpenDP has no seed: right samplers fail once in a million runs."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    distance = dp.l2_distance if law == "gaussian" else dp.l1_distance
    space = dp.vector_domain(dp.atom_domain(T="i64")), distance(T="i64")
    make = dp.m.make_gaussian if law == "gaussian" else dp.m.make_laplace
    theirs = np.array(make(*space, scale=float(scale))([0] * 20_000))
    for stretch in (Fraction(1), Fraction(2, 3), Fraction(3, 2)):
        ours = SAMPLERS[law](stretch * scale, SAMPLE, SeededSource(15))
        assert (
            same_law(theirs, ours) > FALSE_ALARM if stretch == 1 else same_law(theirs, ours) < 1e-9
        )


@pytest.mark.parametrize("scale", [Fraction(100), Fraction(2**45)], ids=str)
def test_the_bits_that_refine_a_value_do_not_affect_its_acceptance(scale: Fraction):
    shift = laplace_module._coarsening(scale)
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


@pytest.mark.parametrize("sigma", [100, 2**45])
def test_an_acceptance_in_doubt_is_decided_by_the_exact_exponent(sigma: int):
    shift = gaussian_module._coarsening(Fraction(sigma**2))
    low = 2**shift - 1
    value = 2**shift * 40 + low  # its square does not fit into int64 for the larger sigma
    coarse = gaussian_module._table(Fraction(sigma**2, 4**shift), False)._words[39] + 1
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


def test_zero_is_rejected_once_for_its_second_sign():
    minus, plus = 2**64 - 1, 0
    source = ScriptedSource([0, 0, minus, 0, 0, plus])
    assert discrete_gaussian(10**4, 1, source).tolist() == [0]
    assert source.used == 6


@pytest.mark.parametrize("size", [0, 1, 2**13 - 1, 2**13, 2**13 + 1, 2**16 + 7])
@every_law
def test_any_size_and_for_an_empty_table_nothing_is_drawn(size: int, law: str):
    for scale in (Fraction(2), Fraction(1000)):
        sample = SAMPLERS[law](scale, size, SystemSource() if size else ScriptedSource([]))
        assert sample.shape == (size,)
        assert sample.dtype == np.int64


@pytest.mark.parametrize(
    ("sampler", "largest"),
    [
        (discrete_laplace, LARGEST_SCALE),
        (geometric, LARGEST_SCALE),
        (discrete_gaussian, LARGEST_VARIANCE),
    ],
)
def test_scales_that_are_not_exact_or_not_positive_are_refused(sampler, largest):
    for scale in (2.0, "2", True, np.float64(1), None):
        with pytest.raises(TypeError, match="must be a Fraction"):
            sampler(scale, 1, SeededSource(0))
    for scale in (Fraction(0), -1, largest + 1):
        with pytest.raises(ValueError, match="must"):
            sampler(scale, 1, SeededSource(0))


@pytest.mark.parametrize("scale", ["1/50", "1/3", "1", "7/4", "2", "3", "90"])
@both_laws
def test_the_standard_deviation_is_that_of_the_law(scale: str, law: str):
    scale, z = Fraction(scale), np.arange(-6000, 6001)
    second_moment = float(pmf(law, float(scale), z) @ z**2.0)
    found = gaussian_stddev(scale**2) if law == "gaussian" else laplace_stddev(scale)
    assert found == pytest.approx(np.sqrt(second_moment), rel=1e-10)
    assert law == "laplace" or found <= float(scale) * (1 + 1e-12)


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("level", [1e-9, 0.5, 0.95, 1 - 1e-12])
def test_the_quantile_of_laplace_noise_is_the_smallest_that_covers(scale: Fraction, level: float):
    t = laplace_quantile(scale, level)

    def outside(t: int) -> float:  # P(|Z| > t)
        return 2 * np.exp(-(t + 1) / float(scale)) / (1 + np.exp(-1 / float(scale)))

    assert outside(t) <= (1 - level) * (1 + 1e-9)
    assert t == 0 or outside(t - 1) > (1 - level) * (1 - 1e-9)


@pytest.mark.parametrize("sigma", [0.05, 0.6, 1, 2.5, 31, 999, 1001, 3000])
@pytest.mark.parametrize("level", [1e-6, 0.5, 0.95, 1 - 1e-10])
def test_the_quantile_of_gaussian_noise_is_the_smallest_that_covers(sigma: float, level: float):
    t = gaussian_quantile(Fraction(sigma) ** 2, level)
    z = np.arange(int(30 * sigma) + 30)
    weights = np.exp(-(z**2) / (2 * sigma**2)) * np.where(z > 0, 2, 1)
    outside = np.append(np.cumsum(weights[:0:-1])[::-1], 0.0) / weights.sum()  # P(|Z| > t)
    assert outside[t] <= (1 - level) * (1 + 1e-9)
    assert t == 0 or outside[t - 1] > (1 - level) * (1 - 1e-9)
