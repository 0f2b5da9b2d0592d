"""Real vectors on a lattice: rounding can add to the sensitivity, and all of it is counted."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.errors import PrivacyLineError
from dpcore.lattice import Lattice


def squared(steps: np.ndarray) -> int:
    return sum(int(step) ** 2 for step in steps)


@pytest.mark.parametrize("size", [1, 2, 3, 16, 1000])
@pytest.mark.parametrize("rows", [1, 10**6, 2**30, 2**38 - 1])
def test_vectors_within_the_sensitivity_stay_within_the_counted_one(size: int, rows: int):
    random = np.random.default_rng(size)
    lattice = Lattice.for_sensitivity(0.7 / rows, size, rows)
    farthest = 0
    for _ in range(200):
        base = random.uniform(-1, 1, size)
        direction = random.choice([random.normal(size=size), np.ones(size), np.eye(size)[0]])
        other = base + direction / np.linalg.norm(direction) * lattice.sensitivity * (1 - 1e-12)
        # Computing either vector may err by less than half a step.
        errors = random.uniform(-0.49, 0.49, (2, size)) * lattice.step
        moved = lattice.encode(base + errors[0]) - lattice.encode(other + errors[1])
        farthest = max(farthest, squared(moved))
    assert farthest <= lattice.l2_sensitivity_squared


@pytest.mark.parametrize("size", [1, 4, 9, 100])
def test_the_worst_rounding_needs_the_room_that_is_counted_for_it(size: int):
    """Both vectors rounded outwards, and both computed half a step outwards."""
    lattice = Lattice.for_sensitivity(1.0, size, 1)
    steps = round(1.0 / lattice.step)
    apart = (steps // math.isqrt(size)) * np.ones(size)  # whole steps, of length at most 1
    outwards = np.full(size, 0.5 + 0.49)
    upper, lower = (apart + outwards) * lattice.step, -outwards * lattice.step
    moved = lattice.encode(upper) - lattice.encode(lower)
    assert squared(moved) <= lattice.l2_sensitivity_squared
    without_rounding = Fraction(steps) ** 2
    assert squared(moved) > without_rounding
    # At most one whole step per axis of the counted room is left over.
    counted, used = math.sqrt(lattice.l2_sensitivity_squared), math.sqrt(squared(moved))
    assert counted - used <= 2 + math.sqrt(size) + 0.01


def test_rounding_is_lost_beside_the_sensitivity():
    for size in (1, 1000, 10**6):
        lattice = Lattice.for_sensitivity(3e-9, size, 10**6)
        grown = math.sqrt(lattice.l2_sensitivity_squared) * lattice.step / 3e-9
        assert 1 < grown < 1 + 3 * math.sqrt(size) / 2**23
        assert grown < 1.001


def test_the_step_stays_above_what_double_precision_can_tell_apart():
    for rows in (1, 2**24 - 1, 2**24, 2**31, 2**38 - 1):
        lattice = Lattice.for_sensitivity(1 / rows, 5, rows)
        assert lattice.step >= 2.0**-48
        assert lattice.sensitivity / lattice.step >= 2**10
        assert math.log2(lattice.sensitivity / lattice.step).is_integer()


def test_encoding_and_decoding_lose_half_a_step_at_most():
    lattice = Lattice.for_sensitivity(1e-3, 1000, 1000)
    vector = np.random.default_rng(1).normal(size=1000)
    again = lattice.decode(lattice.encode(vector))
    assert np.abs(again - vector).max() <= lattice.step / 2 * (1 + 1e-6)
    assert lattice.encode(vector).dtype == np.int64
    np.testing.assert_array_equal(lattice.encode(again), lattice.encode(vector))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, 2.0**62 * 2.0**-24])
def test_numbers_that_no_integer_can_hold_are_refused_without_being_told(value: float):
    lattice = Lattice.for_sensitivity(1.0, 2, 1)
    with pytest.raises(PrivacyLineError, match="not finite or has the wrong shape") as refusal:
        lattice.encode(np.array([0.0, value]))
    assert str(value) not in str(refusal.value)


def test_vectors_of_the_wrong_shape_are_refused():
    lattice = Lattice.for_sensitivity(1.0, 2, 1)
    for shape in ((), (1,), (3,), (2, 1), (1, 2)):
        with pytest.raises(PrivacyLineError):
            lattice.encode(np.zeros(shape))


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.nan, math.inf])
def test_a_sensitivity_must_be_positive_and_finite(sensitivity: float):
    with pytest.raises(ValueError, match="positive and finite"):
        Lattice.for_sensitivity(sensitivity, 1, 1)


@pytest.mark.parametrize("rows", [2**38, 2**60])
def test_more_rows_than_double_precision_can_count_are_refused(rows: int):
    with pytest.raises(ValueError, match="too many rows"):
        Lattice.for_sensitivity(1 / rows, 1, rows)
