"""The linear programs and the fast form, against each other and reference values."""

import numpy as np
import pytest
from scipy import stats

from dpcore.releases.counts.best_answer import LARGEST_WINDOW, best_answer
from papers.minimax_count.programs import geometric_table, losses, optimal_remap, optimal_table


@pytest.mark.parametrize(("beta", "risk"), [(0, 3.367), (1e-3, 3.336), (0.01, 3.056), (0.1, 1.502)])
def test_minimax_risks_with_beta_have_their_reference_values(beta: float, risk: float):
    table, value = optimal_table(10, 0.1, beta)
    assert value == pytest.approx(risk, abs=6e-4)
    excess = [
        np.maximum(table[j] - np.exp(0.1) * table[k], 0).sum()
        for j in range(11)
        for k in (j - 1, j + 1)
        if 0 <= k <= 10
    ]
    assert max(excess) <= beta + 1e-7


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "risk"), [(0.1, 8.26394), (0.5, 1.91264), (1, 0.85092)])
def test_the_minimax_of_seventy_records_and_that_of_remapped_geometric_noise(alpha, risk):
    _, value = optimal_remap(70, alpha)
    assert value == pytest.approx(risk, abs=6e-6)


@pytest.mark.slow
def test_a_program_that_the_tightest_tolerance_leaves_unsolved_is_solved_at_the_next():
    assert optimal_table(70, 0.35)[1] == pytest.approx(optimal_remap(70, 0.35)[1], abs=6e-6)


@pytest.mark.parametrize("loss", ["absolute", "squared", "zero-one"])
@pytest.mark.parametrize("proportion", [None, 0.5, 0.03])
@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_no_answer_to_geometric_noise_has_a_smaller_expected_loss_than_the_best(
    alpha, proportion, loss
):
    n = 14
    prior = (
        np.ones(n + 1) if proportion is None else stats.binom.pmf(np.arange(n + 1), n, proportion)
    )
    expected = (prior[:, None] * geometric_table(n, alpha)).T @ losses(n, loss)
    answers = [best_answer(z, n, 1 / alpha, loss, proportion) for z in range(n + 1)]
    chosen = expected[np.arange(n + 1), answers]
    np.testing.assert_allclose(chosen, expected.min(axis=1), rtol=1e-9)


def test_tables_without_records_and_nearly_exact_counts():
    assert geometric_table(0, 1.0).tolist() == [[1.0]]
    for loss in ("absolute", "squared", "zero-one"):
        assert best_answer(7, 0, 3.0, loss, None) == 0
        assert best_answer(-50, 10, 0.01, loss, None) == 0
        assert best_answer(6, 10, 0.01, loss, 0.3) == 6
    # Far beyond both ends the answer is that at the end.
    assert best_answer(10**15, 50, 2.0, "absolute", None) == best_answer(
        50, 50, 2.0, "absolute", None
    )


def test_many_records_are_refused_only_if_too_many_counts_are_likely():
    assert best_answer(10**8, 10**9, 100.0, "absolute", None) == 10**8
    with pytest.raises(ValueError, match="too many counts are likely"):
        best_answer(5, LARGEST_WINDOW + 1, 1.0, "absolute", 0.5)
    with pytest.raises(ValueError, match="too many counts are likely"):
        best_answer(5, 10**9, 1e6, "absolute", None)
