"""Choices have exactly the law of the exponential mechanism."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.sampling.choice import exponential_choices
from dpcore.sampling.source import SeededSource
from tests.chance import FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5, 2), Fraction(10_000)])
@pytest.mark.parametrize("low", [0, -(2**60)])
def test_chances_fall_exponentially_with_the_score(scale: Fraction, low: int):
    excess = np.array([4, 0, 0, 1, 27, 2])
    draws = exponential_choices(np.tile(low + excess, (40_000, 1)), scale, SeededSource(1))
    counts = np.bincount(draws, minlength=6)
    for stretch in (1, 2 / 3, 3 / 2):
        weights = np.exp(-excess / (float(scale) * stretch))
        p_value = stats.chisquare(counts, weights / weights.sum() * draws.size).pvalue
        if stretch == 1:
            assert p_value > FALSE_ALARM
        elif scale < 100:  # beyond, all are nearly equally likely
            assert p_value < 1e-9


def test_rows_are_chosen_from_independently():
    scores = np.tile([[0, 1], [1, 0]], (20_000, 1)).astype(np.int64)
    draws = exponential_choices(scores, Fraction(1), SeededSource(3)).reshape(-1, 2)
    table = stats.contingency.crosstab(draws[:, 0], draws[:, 1]).count
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM
    assert draws.mean(axis=0) == pytest.approx([1 / (1 + np.e), np.e / (1 + np.e)], abs=0.02)


def test_one_good_candidate_among_many_bad_ones_is_found():
    scores = np.full((1, 2**17), 2**61)
    scores[0, 99_999] = -(2**61)
    assert exponential_choices(scores, Fraction(2), SeededSource(4)).tolist() == [99_999]


def test_no_rows_and_a_single_candidate():
    assert exponential_choices(np.zeros((0, 3), np.int64), 1, SeededSource(5)).size == 0
    assert exponential_choices(np.array([[5], [-5]]), 1, SeededSource(5)).tolist() == [0, 0]
