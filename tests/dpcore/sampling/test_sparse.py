from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dpcore.sampling import sparse
from dpcore.sampling.source import SeededSource
from dpcore.sampling.sparse import distinct_integers, threshold_exceedances, uniform_integers
from tests.chance import FALSE_ALARM
from tests.dpcore.sampling.sampling_oracles import (
    DIGITS,
    ScriptedSource,
    exp_minus,
    fit_each_value,
    scaled,
)


def exceedance(scale: Fraction, threshold: int) -> Decimal:
    with localcontext(prec=DIGITS):
        return exp_minus((threshold + 1) / scale) / (1 + exp_minus(1 / scale))


def counts(trials: int, scale: Fraction, threshold: int, repetitions: int) -> np.ndarray:
    source = SeededSource(31)
    draws = [threshold_exceedances(trials, scale, threshold, source) for _ in range(repetitions)]
    return np.array(draws)


CASES = [
    (20, Fraction(2), 0),  # mean 6
    (7, Fraction(1000), 0),  # a fair coin, nearly
    (1000, Fraction(200), 300),  # mean 111: groups and a rest
    (2**60, Fraction(2), 82),  # mean 0.7
    (2**60, Fraction(2), 72),  # mean 101
    (2**60, Fraction(5, 3), 75),  # mean 0.01
]


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "scale", "threshold"), [CASES[0], CASES[2], CASES[3]])
def test_the_number_of_exceedances_is_binomial(
    trials: int, scale: Fraction, threshold: int
) -> None:
    p = float(exceedance(scale, threshold))
    repetitions = 3000 if trials * p < 1 else 1500
    sample = counts(trials, scale, threshold, repetitions)
    k = np.arange(int(trials * p + 10 * np.sqrt(trials * p)) + 10)
    assert fit_each_value(sample, stats.binom.pmf(k, trials, p), 0) > FALSE_ALARM
    if trials * p > 0.1:
        assert fit_each_value(sample, stats.binom.pmf(k, trials, p * 2 / 3), 0) < 1e-9
        assert fit_each_value(sample, stats.binom.pmf(k, trials, min(1, p * 3 / 2)), 0) < 1e-9


@pytest.mark.parametrize(("trials", "scale", "threshold"), [*CASES, (2**60, Fraction(2), 160)])
def test_binomial_cuts_bracket_the_truth(trials: int, scale: Fraction, threshold: int) -> None:
    p = exceedance(scale, threshold)
    trials = min(trials, int(30 / p))
    probability = partial(sparse._exceedance, scale, threshold)
    with localcontext(prec=DIGITS):
        pmf, total = (1 - p) ** trials, Decimal(0)
        for k, (lower, upper) in zip(
            range(min(trials, 40)),
            sparse._binomial_cuts(trials, probability, 128),
            strict=False,
        ):
            total += pmf
            pmf = pmf * (trials - k) / (k + 1) * p / (1 - p)
            assert lower <= scaled(total, 128) <= upper
            assert upper - lower <= 3


def test_no_trials_give_no_exceedances() -> None:
    assert threshold_exceedances(0, 2, 5, ScriptedSource([])) == 0


def test_arguments_of_exceedances_are_checked() -> None:
    for trials, scale, threshold, error in (
        (10, 2.0, 1, TypeError),
        (10, 0, 1, ValueError),
        (-1, 2, 1, ValueError),
        (10, 2, -1, ValueError),
        (10, 2, 1.5, TypeError),
        (2**63, 2, 1, ValueError),
    ):
        with pytest.raises(error):
            threshold_exceedances(trials, scale, threshold, SeededSource(0))


@pytest.mark.slow
@pytest.mark.parametrize(("excluded", "count"), [([1, 4], 2), ([], 3), ([0, 5], 1), ([0, 1], 3)])
def test_every_set_of_free_integers_is_equally_likely(excluded: list[int], count: int) -> None:
    source = SeededSource(34)
    free = [i for i in range(6) if i not in excluded]
    sets = {chosen: i for i, chosen in enumerate(combinations(free, count))}
    drawn = np.array(
        [
            sets[
                tuple(
                    distinct_integers(6, count, np.array(excluded, dtype=np.int64), source).tolist()
                )
            ]
            for _ in range(4000)
        ]
    )
    assert fit_each_value(drawn, np.full(len(sets), 1 / len(sets)), 0) > FALSE_ALARM


def test_integers_from_a_huge_domain_are_distinct_ascending_and_free() -> None:
    excluded = np.sort(uniform_integers(2**60, 5000, SeededSource(35)))
    drawn = distinct_integers(2**60, 50_000, excluded, SeededSource(36))
    assert drawn.dtype == np.int64
    assert (np.diff(drawn) > 0).all()
    assert drawn[0] >= 0
    assert drawn[-1] < 2**60
    assert not np.isin(drawn, excluded).any()
    assert fit_each_value(drawn >> 54, np.full(64, 1 / 64), 0) > FALSE_ALARM


def test_all_free_integers_and_none() -> None:
    excluded = np.array([0, 2, 9])
    assert distinct_integers(10, 7, excluded, SeededSource(1)).tolist() == [1, 3, 4, 5, 6, 7, 8]
    assert distinct_integers(10, 0, excluded, ScriptedSource([])).tolist() == []
    assert distinct_integers(3, 0, np.arange(3), ScriptedSource([])).tolist() == []
    assert distinct_integers(1, 1, np.empty(0, dtype=np.int64), SeededSource(1)).tolist() == [0]


def test_impossible_requests_for_integers_are_refused() -> None:
    none = np.empty(0, dtype=np.int64)
    for below, count, excluded in (
        (5, 6, none),
        (5, 5, np.array([1])),
        (5, 1, np.array([2, 1])),
        (5, 1, np.array([1, 1])),
        (5, 1, np.array([5])),
        (5, -1, none),
        (2**63, 1, none),
    ):
        with pytest.raises(ValueError, match="must"):
            distinct_integers(below, count, excluded, SeededSource(0))


@pytest.mark.parametrize("below", [1, 2, 3, 64, 65])
def test_uniform_integers_are_uniform(below: int) -> None:
    drawn = uniform_integers(below, 50_000, SeededSource(below))
    assert drawn.min() >= 0
    assert drawn.max() < below
    if below > 1:
        assert fit_each_value(drawn, np.full(below, 1 / below), 0) > FALSE_ALARM
