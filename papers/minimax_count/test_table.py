"""Tables of whole numbers: their privacy is proved, and what cannot be proved is refused."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from papers.minimax_count.mechanism import TabulatedMechanism
from papers.minimax_count.programs import optimal_table
from papers.minimax_count.table import LARGEST_COUNT, TOTAL, is_private, minimax_table, worst_risk

ONE, ZERO = Fraction(1), Fraction(0)


def exact_beta(table: np.ndarray, alpha: Fraction) -> Fraction:
    """The least beta of a table, with 60 digits of e^alpha."""
    with mpmath.workdps(60):
        factor = Fraction(
            int(mpmath.floor(mpmath.exp(mpmath.mpf(str(float(alpha)))) * 10**50)), 10**50
        )
    rows = [[Fraction(int(part), TOTAL) for part in row] for row in table]
    return max(
        sum(max(p - factor * q, ZERO) for p, q in zip(rows[j], rows[k], strict=True))
        for j in range(len(rows))
        for k in (j - 1, j + 1)
        if 0 <= k < len(rows)
    )


@pytest.mark.parametrize(
    ("alpha", "beta"), [("1", "0"), ("0.125", "0"), ("4", "0"), ("1", "0.001"), ("0.125", "0.05")]
)
@pytest.mark.parametrize("n", [1, 2, 12])
def test_a_table_is_private_beyond_rounding_and_as_good_as_the_program(alpha, beta, n):
    a, b = Fraction(alpha), Fraction(beta)
    table = minimax_table(n, a, b, "absolute")
    assert [sum(row) for row in table.tolist()] == [TOTAL] * (n + 1)
    assert exact_beta(table, a) <= b
    assert not is_private(table, a * Fraction(99, 100), b * Fraction(9, 10))
    best = optimal_table(n, float(a), float(b))[1]
    assert best - 1e-7 <= worst_risk(table, "absolute") <= best + 2e-4 * n


def test_one_part_too_many_is_noticed():
    """Randomised response at the edge of ln 3: any more, and the proof fails."""
    fair = np.array([[3 * (TOTAL // 4), TOTAL // 4], [TOTAL // 4, 3 * (TOTAL // 4)]])
    above, below = Fraction("1.09861228866811"), Fraction("1.09861228866810")  # around ln 3
    assert is_private(fair, above, ZERO)
    assert not is_private(fair, below, ZERO)
    assert is_private(fair, ZERO, Fraction(1, 2))
    worse = fair + np.array([[1, -1], [0, 0]])
    assert not is_private(worse, ZERO, Fraction(1, 2))


def test_a_table_that_is_no_distribution_is_not_private():
    half = TOTAL // 2
    assert not is_private(np.array([[half, half], [half, half + 1]]), ONE, ZERO)
    assert not is_private(np.array([[TOTAL + 1, -1], [TOTAL, 0]]), ONE, ONE / 2)


def test_tables_are_refused_where_they_would_take_too_long_or_cannot_be_certified():
    for n in (0, LARGEST_COUNT + 1):
        with pytest.raises(ValueError, match=f"rows, not {n}; use discrete-laplace"):
            minimax_table(n, ONE, ZERO, "absolute")
    with pytest.raises(ValueError, match="too small for a table"):
        minimax_table(5, Fraction(1, 10**8), ZERO, "absolute")


def test_a_mechanism_cannot_state_less_than_its_table_loses():
    table = tuple(map(tuple, minimax_table(4, ONE, ZERO, "absolute").tolist()))
    TabulatedMechanism(1, ONE, ZERO, table)
    with pytest.raises(ValueError, match="not private at its stated"):
        TabulatedMechanism(1, ONE / 2, ZERO, table)
