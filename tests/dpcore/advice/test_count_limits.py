"""No mechanism that we can make or compute is better than the bounds, and the best ones attain them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.advice.count_limits import POWERS, count_risk, sparse_risk, table_risk
from papers.minimax_count.programs import optimal_table
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


def test_the_bound_of_hall_holds_where_its_condition_does():
    """Proposition 2.3.1 needs n >= 6/alpha: for one record and alpha 0.1 it is false."""
    for alpha in (0.1, 0.5, 1.5):
        assert count_risk(alpha, math.ceil(60 / alpha)) >= math.exp(-2) / alpha
    assert worst_risk(minimax_table(1, Fraction(1, 10), Fraction(0), "absolute"), "absolute") < (
        math.exp(-2) / 0.1
    )


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


def test_few_records_make_only_so_much_error():
    """A table that is published without looking has an L1 error of at most twice its records."""
    for cells in (2, 10, 1000, 10**6):
        assert table_risk(0.01, cells, 50, True) <= 100
        assert sparse_risk(0.01, cells, 50, True) <= 100


@pytest.mark.parametrize("replaced", [True, False])
def test_the_bound_of_a_sparse_table_grows_with_the_logarithm_of_the_cells(replaced):
    found = [sparse_risk(1, 2**k, 10**9, replaced) for k in (10, 20, 40)]
    assert found[0] < found[1] < found[2]
    assert 0.3 * math.log(2**40) < found[2] < math.log(2**40)
    assert sparse_risk(1, 2, 10, True) == 0


def test_no_decoder_finds_a_hidden_cell_more_often_than_the_bound_says():
    """Thresholded noise, simulated on tables of two occupied cells: the error is above the bound."""
    generator, cells, alpha = np.random.default_rng(1), 64, 1.0
    scale, threshold = 2 / alpha, 2 / alpha * math.log(cells)
    worst = 0.0
    for hidden in (1, 2, 4, 8):
        exact = np.zeros(cells)
        exact[[0, 1]] = 1000, hidden
        passing = math.exp(-1 / scale)
        noise = generator.geometric(1 - passing, (2, 4000, cells))
        noisy = exact + noise[0] - noise[1]
        kept = np.where(noisy > threshold, noisy, 0)
        worst = max(worst, np.abs(kept - exact).sum(axis=1).mean() / 2)
    assert worst > sparse_risk(alpha, cells, 1000, True)
