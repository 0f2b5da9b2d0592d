"""Real vectors on a lattice: rounding can add to the sensitivity, and all of it is counted."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.domain import Domain
from dpcore.domain.lattice import Lattice, transform_roundings
from dpcore.errors import PrivacyLineError
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.cosines import Cosines
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.densities.waves import Waves
from tests.dpcore.releases.contract import grid


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


def test_the_step_stays_above_the_precision_of_doubles():
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
def test_numbers_too_large_for_integers_are_refused_without_being_shown(value: float):
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


@pytest.mark.parametrize("rows", [2**42, 2**60])
def test_more_rows_than_double_precision_can_count_are_refused(rows: int):
    assert Lattice.for_sensitivity(1.0, 1, 2**42 - 1).step == 2.0**-6
    with pytest.raises(ValueError, match=r"use at most 4\.4e\+12"):
        Lattice.for_sensitivity(1 / rows, 1, rows)


def precise_mean(kind: type[Basis], weights: np.ndarray, numbers: np.ndarray) -> np.longdouble:
    """One coefficient as a sum over all cells with the 64 bits of an extended float.

    Angles are whole parts of a turn before they are multiplied by pi, so large ones lose nothing.
    """
    total, pi = weights.astype(np.longdouble), np.arccos(np.longdouble(-1))
    for size, number in zip(reversed(weights.shape), reversed(numbers.tolist()), strict=True):
        turns = number if kind is Cosines else 2 * ((number + 1) // 2)
        angles = turns * (2 * np.arange(size) + 1) % (4 * size) * pi / (2 * size)
        waves = np.sin(angles) if kind is Waves and number and number % 2 == 0 else np.cos(angles)
        total = (total * waves * np.sqrt(np.longdouble(1 + (number > 0)))).sum(axis=-1)
    return np.longdouble(total)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Cosines, Waves])
@pytest.mark.parametrize(
    "shape", [(2**18,), (3**10,), (97,), (65521,), (256, 128), (97, 101)], ids=str
)
def test_a_transform_errs_by_no_more_than_the_lemma_says(kind: type[Basis], shape: tuple[int, ...]):
    """Powers of two, small and large primes; one cell, two corners, a block, and records at random."""
    random = np.random.default_rng(len(shape))
    basis = kind(shape, (0.02,) * len(shape), shape)
    tables = np.zeros((4, math.prod(shape)))
    tables[0, random.integers(tables.shape[1])] = 10**6
    tables[1, [0, -1]] = 10**6 - 1, 1
    tables[2, : tables.shape[1] // 3] = 3
    np.add.at(tables[3], random.integers(tables.shape[1], size=10**5), 7)
    worst = 0.0
    for table in tables.reshape(4, *shape):
        found = basis.means(table)
        for k in random.choice(basis.size, 3, replace=False):
            numbers = basis.frequencies[k]
            error = abs(found[k] - precise_mean(kind, table, numbers))
            largest_term = math.sqrt(2) ** np.count_nonzero(numbers)
            worst = max(worst, float(error / table.sum() / largest_term) * 2.0**53)
    assert 0 < worst <= transform_roundings(shape)
    assert worst < 16  # far from the bound, which is about the worst roundings that could be


@pytest.mark.parametrize("rows", [1000, 2**23, 2**28])
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, Adjacency("add-remove")], ids=str)
@pytest.mark.parametrize("periodic", [False, True])
def test_computing_a_density_moves_no_coefficient_by_more_than_half_a_step(
    rows: int, adjacency: Adjacency, periodic: bool
):
    domain = Domain((grid("x", 2**12),))
    share = Budget.of("1", "1e-6")
    for bandwidth in (0.01, 0.3, 0.5):
        facts: Any = ("d", domain, rows, share, (bandwidth,))
        if adjacency.most_rows(rows) == 2**38:
            with pytest.raises(ValueError, match="no large prime factor"):
                SpectralDensity(*facts, periodic=periodic, adjacency=adjacency)
            continue
        release = SpectralDensity(*facts, periodic=periodic, adjacency=adjacency)
        basis = release.basis
        terms = np.sqrt(2.0 ** np.count_nonzero(basis.frequencies, axis=1) * basis.lambdas)
        assert terms.max() <= release.sensitivity * rows * (1 + 1e-9)
        weight = release.most_rows / rows
        error = transform_roundings(domain.shape) * 2.0**-53 * weight * terms.max()
        assert error <= release.lattice.step / 2


@pytest.mark.parametrize(
    ("shape", "most"), [((2**16,), 1500), ((97,), 2**14), ((2**24,), 2100), ((16777213,), 2**25)]
)
def test_few_roundings_are_counted_but_for_large_primes(shape: tuple[int, ...], most: int):
    assert most / 4 < transform_roundings(shape) < most
    assert transform_roundings((1,)) == 21 + 4 * 12
