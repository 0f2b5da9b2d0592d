"""No mechanism that we can make or compute is better than the bounds, and the best ones attain them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dpcore.advice.count_limits import POWERS, count_risk, table_risk, uniform_risk
from papers.minimax_count.programs import losses, optimal_table
from papers.minimax_count.table import minimax_table, worst_risk


@pytest.mark.parametrize("loss", POWERS)
@pytest.mark.parametrize(("records", "alpha"), [(1, 0.5), (6, 3.0), (20, 1.0), (40, 0.2)])
def test_the_best_table_of_the_linear_program_is_not_better(records, alpha, loss):
    _, best = optimal_table(records, alpha, 0.0, loss)
    bound = count_risk(alpha, records, loss)
    assert bound <= best * (1 + 1e-6)
    assert worst_risk(minimax_table(records, Fraction(str(alpha)), Fraction(0), loss), loss) > bound
    if alpha * records >= 20:
        assert bound > best * 0.7


def least_risk_at(count: int, records: int, alpha: float, worst: float, loss: str) -> float:
    """The least expected loss at one count, of all mechanisms whose worst case is at most ``worst``."""
    n = records + 1
    penalty = losses(records, loss)
    chance = np.arange(n * n).reshape(n, n)  # of each answer, by count
    limits, bounds = [], []
    for j in range(n):
        limits.append(np.bincount(chance[j], penalty[j], n * n))
        bounds.append(worst)
        for k in (j - 1, j + 1):
            for answer in range(n if 0 <= k < n else 0):
                row = np.zeros(n * n)
                row[chance[j, answer]], row[chance[k, answer]] = 1, -math.exp(alpha)
                limits.append(row)
                bounds.append(0.0)
    whole = np.kron(np.eye(n), np.ones(n))
    aim = np.bincount(chance[count], penalty[count], n * n)
    return float(linprog(aim, limits, bounds, whole, np.ones(n)).fun)


@pytest.mark.parametrize("loss", POWERS)
@pytest.mark.parametrize(("records", "alpha"), [(12, 1.0), (15, 2.0)])
def test_no_mechanism_with_this_worst_case_has_a_smaller_error_on_any_table(records, alpha, loss):
    worst = 1.05 * optimal_table(records, alpha, 0.0, loss)[1]
    bound = uniform_risk(alpha, records, worst, loss)
    least = [least_risk_at(i, records, alpha, worst, loss) for i in (0, 3, records // 2)]
    assert 0 < bound <= min(least)
    assert bound > 0.1 * min(least)


def test_the_bound_on_every_table_is_some_share_of_the_worst_case_and_more_than_markovs():
    for alpha in (0.01, 0.1):
        assert uniform_risk(alpha, 10**6, 1 / alpha) * alpha == pytest.approx(
            math.exp(-2), rel=0.01
        )
        assert uniform_risk(alpha, 10**6, 1 / alpha, most=3) * alpha > math.exp(-2)
        # With the constants of Hall (2012), proposition 2.3.2, chosen as well as they can be.
        t, m = np.meshgrid(np.linspace(1, 5, 400), np.linspace(1, 9, 400))
        assert ((m - t) * np.exp(-m) * (1 - 1 / t)).max() < 0.03
    assert uniform_risk(1.0, 1, 0.5) == 0.0  # of one record there is no table that is so far away


def geometric_risk(alpha: float, loss: str) -> float:
    distances = np.arange(1, 5000)
    chances = 2 * math.tanh(alpha / 2) * np.exp(-alpha * distances)
    return float(np.sum(chances * distances.astype(float) ** POWERS[loss]))


@pytest.mark.parametrize("loss", POWERS)
@pytest.mark.parametrize("alpha", [0.05, 0.5, 1, 5])
def test_geometric_noise_attains_the_bound_for_many_records(alpha, loss):
    noise = geometric_risk(alpha, loss)
    assert noise * (1 - 1e-4) <= count_risk(alpha, 10**8, loss) <= noise * (1 + 1e-9)
    if loss == "absolute":
        assert noise == pytest.approx(1 / math.sinh(alpha))


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.floats(1e-6, 20),
    st.integers(1, 10**12),
    st.sampled_from(sorted(POWERS)),
    st.integers(1, 1000),
)
def test_counts_are_never_easier_with_more_records_or_larger_units(alpha, records, loss, most):
    bound = count_risk(alpha, records, loss, most)
    noise = {
        "absolute": most / math.sinh(alpha),
        "squared": most**2 / (2 * math.sinh(alpha / 2) ** 2),
        "zero-one": 2 / (math.exp(alpha) + 1),
    }[loss]
    assert 0 <= bound <= noise * (1 + 1e-6)
    assert bound <= count_risk(alpha, 2 * records + 1, loss, most) * (1 + 1e-6)


def test_a_table_of_two_cells_is_one_count_with_two_errors():
    assert table_risk(1, 2, 500, True) == pytest.approx(2 * count_risk(1, 500))
    assert table_risk(1, 3, 500, True) == pytest.approx(2 * count_risk(1, 500))
    assert table_risk(1, 1, 500, True) == 0
    assert table_risk(1, 4, 10**6, False) == pytest.approx(4 / math.sinh(1), rel=1e-3)
