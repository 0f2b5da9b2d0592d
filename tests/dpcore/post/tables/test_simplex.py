"""The nearest non-negative vector with a given sum, and whole numbers with a given sum."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpcore.post.tables.simplex import project_to_simplex, round_to_total

vectors = arrays(np.float64, st.integers(1, 12), elements=st.floats(-1e4, 1e4))


@pytest.mark.slow
@settings(max_examples=200)
@given(vectors, st.floats(0, 1e5))
def test_the_projection_satisfies_its_optimality_conditions(values, total):
    """Karush-Kuhn-Tucker: one shift theta for all positive cells, and values <= theta at zero."""
    nearest = project_to_simplex(values, total)
    scale = 1e-9 * (np.abs(values).max() + total + 1)
    assert np.all(nearest >= 0)
    assert nearest.sum() == pytest.approx(total, abs=len(values) * scale)
    if total > len(values) * scale:
        theta = (values - nearest)[nearest > 0]
        assert np.ptp(theta) <= scale
        assert np.all(values[nearest == 0] <= theta.min() + scale)


def test_projection_at_the_edges():
    assert project_to_simplex([-7.0], 3).tolist() == [3.0]
    assert project_to_simplex([4.0, -2.0, 4.0], 0).tolist() == [0.0, 0.0, 0.0]
    assert project_to_simplex([5.0, 5.0, 5.0], 3).tolist() == [1.0, 1.0, 1.0]
    inside = np.array([0.25, 0.5, 0.25])
    np.testing.assert_allclose(project_to_simplex(inside, 1), inside, rtol=1e-15)


@pytest.mark.slow
@settings(max_examples=200)
@given(arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1e6)), st.integers(0, 10**9))
@example(np.zeros(2), 10**9 - 1)
def test_rounding_keeps_the_total_and_stays_within_one(values, total):
    whole = round_to_total(values, total)
    assert whole.dtype == np.int64
    assert whole.sum() == total
    assert np.all(whole >= 0)
    if values.max() > 1e-3:
        share = values * (total / values.sum())
        assert np.all(np.abs(whole - share) < 1 + 1e-9 * (share + 1))


def test_rounding_gives_ties_to_the_first_cells_and_keeps_whole_numbers():
    assert round_to_total([0.5, 0.5, 0.5, 0.5], 2).tolist() == [1, 1, 0, 0]
    assert round_to_total([[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]], 3).tolist() == [
        [1, 2],
        [3, 0],
        [2, 1],
    ]
    assert round_to_total([0.1 * 3, 0.7], 10).tolist() == [3, 7]
    assert round_to_total([0.0, 0.0, 0.0], 4).tolist() == [2, 1, 1]
    assert round_to_total([3.0], 0).tolist() == [0]


def test_each_vector_may_have_a_total_of_its_own():
    values, totals = np.array([[6.2, 4.1, -1.3], [0.5, -3.0, 1.0], [-1.0, -2.0, 0.5]]), [10, 3, 0]
    nearest = project_to_simplex(values, totals)
    whole = round_to_total(nearest, totals)
    for vector, total, near, rounded in zip(values, totals, nearest, whole, strict=True):
        assert near.tolist() == project_to_simplex(vector, total).tolist()
        assert rounded.tolist() == round_to_total(near, total).tolist()
    with pytest.raises(ValueError, match="total must be finite and not negative"):
        project_to_simplex(values, [10, -3, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: project_to_simplex([1.0], -1), "total must be finite and not negative"),
        (lambda: project_to_simplex([], 1), "at least one cell"),
        (lambda: project_to_simplex([np.nan], 1), "finite"),
        (lambda: round_to_total([1.0], -1), "total must be finite and not negative"),
        (lambda: round_to_total([1.0], 1.5), "total must be a whole number"),
        (lambda: round_to_total([-1.0, 2.0], 1), "not negative"),
        (lambda: round_to_total([], 1), "at least one cell"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
