"""Independent, slow and obvious versions of what the samplers do fast, and a scripted source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpcore.arrays import Floats, Integers
from tests.chance import FALSE_ALARM

DIGITS = 150


class ScriptedSource:
    """Gives the words of a script, and refuses to give one more."""

    reproducible = True

    def __init__(self, words: Iterable[int]) -> None:
        self._words = list(words)
        self.used = 0

    def words(self, size: int) -> NDArray[np.uint64]:
        self.used += size
        if self.used > len(self._words):
            raise AssertionError("the script has no more words")
        return np.array(self._words[self.used - size : self.used], dtype=np.uint64)


def exp_minus(x: Fraction) -> Decimal:
    """exp(-x) to 150 digits (to be called in a context of that precision)."""
    return (-Decimal(x.numerator) / Decimal(x.denominator)).exp()


def laplace_magnitude_cuts(scale: Fraction, length: int) -> list[Decimal]:
    """P(|Z| < k), k = 1, ..., length, from the pmf."""
    with localcontext(prec=DIGITS):
        a = exp_minus(1 / scale)
        pmf = [(1 - a) / (1 + a) * a**k * (2 if k else 1) for k in range(length)]
        return _partial_sums(pmf)


def geometric_cuts(scale: Fraction, length: int) -> list[Decimal]:
    """P(G < k), k = 1, ..., length, from the pmf."""
    with localcontext(prec=DIGITS):
        a = exp_minus(1 / scale)
        return _partial_sums([(1 - a) * a**k for k in range(length)])


def gaussian_magnitude_cuts(variance: Fraction, length: int, folded: bool = True) -> list[Decimal]:
    """P(|Z| < k), k = 1, ..., length, from the weights; or the same without folding."""
    with localcontext(prec=DIGITS):
        reach = int(25 * float(variance) ** 0.5) + length + 30
        weights = [
            exp_minus(Fraction(k * k) / (2 * variance)) * (2 if folded and k else 1)
            for k in range(reach)
        ]
        total = sum(weights)
        return [cut / total for cut in _partial_sums(weights[:length])]


def scaled(value: Decimal, bits: int) -> Decimal:
    """2**bits * value."""
    with localcontext(prec=DIGITS):
        return value * Decimal(2) ** bits


def leading_digits(value: Decimal, bits: int) -> int:
    """floor(2**bits * value)."""
    return int(scaled(value, bits))


def fit(sample: Integers, cdf: Callable[[Integers], Floats]) -> float:
    """The p-value of a chi-square test of a sample of integers against P(Z <= z) = cdf(z).

    Cells are runs of neighbouring values, about 60, with at least 10 draws expected in each.
    """
    cuts = np.unique(np.quantile(sample, np.linspace(0, 1, 61)[1:-1], method="lower"))
    probabilities = np.diff(cdf(cuts), prepend=0.0, append=1.0)
    observed = np.diff(
        np.searchsorted(np.sort(sample), cuts, side="right"), prepend=0, append=sample.size
    )
    return _chi_square(observed, probabilities * sample.size)


def fit_each_value(sample: Integers, pmf: Floats, first: int) -> float:
    """The same with one cell for each value: pmf[i] = P(Z = first + i); the rest is pooled."""
    inside = (sample >= first) & (sample < first + pmf.size)
    observed = np.bincount(sample[inside] - first, minlength=pmf.size)
    observed = np.append(observed, sample.size - inside.sum())
    return _chi_square(observed, np.append(pmf, max(0.0, 1 - pmf.sum())) * sample.size)


def same_law(one: Integers, two: Integers) -> float:
    """The p-value of a two-sample chi-square test."""
    cuts = np.unique(np.quantile(np.concatenate([one, two]), np.linspace(0, 1, 41)[1:-1]))
    table = [np.bincount(np.searchsorted(cuts, x), minlength=cuts.size + 1) for x in (one, two)]
    keep = np.sum(table, axis=0) > 10
    return float(stats.chi2_contingency(np.array(table)[:, keep]).pvalue)


def _chi_square(observed: Integers, expected: Floats) -> float:
    rare = expected < 10
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    # A pooled cell with next to nothing expected would make the statistic erratic.
    if expected[-1] < 5:
        observed = np.append(observed[:-2], observed[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, expected.size - 1))


def _partial_sums(terms: Iterable[Decimal]) -> list[Decimal]:
    sums, total = [], Decimal(0)
    for term in terms:
        total += term
        sums.append(total)
    return sums


def assert_lattice_law(draws: Integers, norm: Callable[[tuple[int, ...]], int], scale: float):
    """Every point z of the plane is drawn as often as exp(-norm(z) / scale) says; draws (k, 2)."""
    reach = 40
    points = list(product(range(-reach, reach + 1), repeat=2))
    weights = np.exp([-norm(p) / scale for p in points])
    weights /= weights.sum()
    codes = (draws[:, 0] + reach) * (2 * reach + 1) + draws[:, 1] + reach
    counts = np.bincount(codes, minlength=len(points))
    common = weights * len(draws) >= 10
    observed = np.r_[counts[common], counts[~common].sum()]
    expected = np.r_[weights[common], weights[~common].sum()] * len(draws)
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def assert_gamma_lengths(lengths: Floats, dimension: int):
    """Norms of draws on a fine lattice, in scales, follow a gamma law, and not 2/3 or 3/2 of it."""
    assert stats.kstest(lengths, stats.gamma(dimension).cdf).pvalue > FALSE_ALARM
    for stretch in (2 / 3, 3 / 2):
        assert stats.kstest(lengths / stretch, stats.gamma(dimension).cdf).pvalue < 1e-9


def assert_exact_and_sub_additive(
    computed: Callable[[Integers], Integers], norm: Callable[[tuple[int, ...]], int]
):
    """``computed`` norms (k,) of vectors (k, 4) are those of the definition, and sub-additive."""
    small = np.random.default_rng(5).integers(-30, 31, (300, 4))
    assert computed(small).tolist() == [norm(tuple(v)) for v in small.tolist()]
    both = computed(small[:150]) + computed(small[150:])
    assert (computed(small[:150] + small[150:]) <= both).all()


def root_up(square: int) -> int:
    """The smallest whole number whose square is at least ``square``."""
    return next(r for r in range(10**6) if r * r >= square)
