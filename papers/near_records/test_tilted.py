"""Sequences near mean features: exactly the stated law, whatever the tilt of the proposals."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy import stats

from dpcore.sampling.source import SeededSource
from papers.near_records import tilted
from papers.near_records.by_series import NearMeansMechanism
from papers.near_records.tilted import NearMeanLaw
from tests.chance import FALSE_ALARM

FEATURES = np.array([[3, -1], [0, 2], [-2, 0], [1, 1]])


def score(total: np.ndarray, rows: int, sequence: tuple[int, ...], features: np.ndarray) -> float:
    mean = features[list(sequence)].sum(axis=0) / len(sequence)
    return float(((total / rows - mean) ** 2).sum())


def law(total: np.ndarray, rows: int, draws: int, scale: float, features=FEATURES) -> Counter:
    """The chance of every table of counts, from the definition."""
    sequences = list(product(range(len(features)), repeat=draws))
    logs = np.array([-score(total, rows, z, features) / scale for z in sequences])
    chances: Counter = Counter()
    for z, chance in zip(sequences, np.exp(logs - np.logaddexp.reduce(logs)), strict=True):
        chances[tuple(np.bincount(z, minlength=len(features)).tolist())] += chance
    return chances


def fit(drawn: np.ndarray, expected: Counter) -> float:
    seen = Counter(map(tuple, drawn.tolist()))
    assert set(seen) <= set(expected)
    chances = np.array([expected[z] for z in expected])
    common = chances * len(drawn) >= 5
    counts = np.array([seen[z] for z in expected])
    rest = [counts[~common].sum()], [chances[~common].sum() * len(drawn)]
    observed = np.r_[counts[common], rest[0]]
    wanted = np.r_[chances[common] * len(drawn), rest[1]]
    return float(stats.chisquare(observed[wanted > 0], wanted[wanted > 0]).pvalue)


@pytest.mark.parametrize("draws", [3])
@pytest.mark.parametrize("records", [(7, 0, 0, 0), (1, 2, 3, 4), (0, 5, 5, 0)])
def test_draws_follow_the_definition_and_not_two_thirds_nor_three_halves_of_the_scale(
    records: tuple[int, ...], draws: int
):
    counts = np.array(records)
    total, rows, scale = counts @ FEATURES, int(counts.sum()), Fraction(3, 2)
    near = NearMeanLaw(total, rows, FEATURES, draws, scale)
    drawn = near.sequences(20_000, SeededSource(3))
    assert np.all(drawn.sum(axis=1) == draws)
    assert fit(drawn, law(total, rows, draws, 1.5)) > FALSE_ALARM
    for stretch in (2 / 3, 3 / 2):
        assert fit(drawn, law(total, rows, draws, 1.5 * stretch)) < 1e-7


@pytest.mark.slow
def test_the_law_does_not_depend_on_the_tilt(monkeypatch: pytest.MonkeyPatch):
    """A bad tilt is slow, and nothing else."""
    total, rows, scale = np.array([4, 3]), 5, Fraction(2)
    for tilt in ((0.0, 0.0), (0.4, -0.2), (-0.3, 0.3)):
        monkeypatch.setattr(NearMeanLaw, "_best_tilt", lambda self, tilt=tilt: np.array(tilt))
        near = NearMeanLaw(total, rows, FEATURES, 3, scale)
        assert fit(near.sequences(20_000, SeededSource(4)), law(total, rows, 3, 2.0)) > FALSE_ALARM


def test_decisions_in_floating_point_are_those_of_exact_arithmetic(
    monkeypatch: pytest.MonkeyPatch,
):
    """Where every decision is exact the same words give the same sequences."""
    total, rows, scale = np.array([4, 3]), 5, Fraction(1, 3)
    monkeypatch.setattr(tilted, "_BATCH", 900)
    fast = NearMeanLaw(total, rows, FEATURES, 3, scale).sequences(300, SeededSource(5))
    monkeypatch.setattr(tilted, "_ROUNDING", 1e9)
    exact = NearMeanLaw(total, rows, FEATURES, 3, scale).sequences(300, SeededSource(5))
    np.testing.assert_array_equal(fast, exact)


def test_no_sequence_is_likelier_than_its_proposal_allows():
    """The bound M holds for all sequences, and the best of them comes near it."""
    total, rows, scale = np.array([9, -1]), 6, Fraction(1, 2)
    near = NearMeanLaw(total, rows, FEATURES, 4, scale)
    largest = 0.0
    for z in product(range(4), repeat=4):
        cells = np.array(z)
        low, high = near._chance(cells, FEATURES[cells].sum(axis=0), 64)
        assert 0 <= low <= high <= 1 << 64
        assert high - low <= 2
        largest = max(largest, high / 2**64)
    assert largest > 0.2


def test_over_all_neighbours_and_outcomes_the_loss_is_alpha_at_most():
    mechanism = NearMeansMechanism(2, 4, 2, 3, 2, Fraction(1))
    features = mechanism.features
    alpha, worst = 1.5, 0.0
    scale = float(4 * mechanism.l2_sensitivity_squared / 3) / alpha
    for shared in combinations_with_replacement(range(4), 2):
        totals = [features[[*shared, c]].sum(axis=0) for c in range(4)]
        laws = [law(total, 3, 2, scale, features) for total in totals]
        for one, other in product(laws, repeat=2):
            worst = max(worst, *(math.log(one[z] / other[z]) for z in one))
    assert 0.3 * alpha < worst <= alpha
