"""The joint sensitivity of tables and residuals, against every pair of records."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.releases.tables import sensitivity
from dpcore.releases.tables.sensitivity import MeasuredBlock, joint_sensitivity


def record(sizes: tuple[int, ...], values: tuple[int, ...], parts: list[MeasuredBlock], norm: str):
    """One record's part of everything, scaled so that plain norms are the weighted ones."""
    found = []
    for part in parts:
        table = np.ones(1)
        for a in part.attributes:
            cell = np.eye(sizes[a])[values[a]]
            if part.centred:
                cell = cell - 1 / sizes[a] if sizes[a] > 2 else cell[:1] - cell[1:]
            table = np.kron(table, cell)
        weight = float(part.weight)
        found.append(table * (weight**0.5 if norm == "l2" else weight))
    return np.concatenate(found)


def by_brute_force(
    sizes: tuple[int, ...], parts: list[MeasuredBlock], norm: str
) -> tuple[float, float]:
    """(moved, present) of all records and all pairs of them."""
    everyone = [record(sizes, values, parts, norm) for values in product(*map(range, sizes))]
    power = 2 if norm == "l2" else 1
    moved = max((np.abs(a - b) ** power).sum() for a, b in product(everyone, repeat=2))
    return moved, max((np.abs(a) ** power).sum() for a in everyone)


@st.composite
def workloads(draw: st.DrawFn, smallest: int = 1, ways: int = 4):
    sizes = tuple(draw(st.lists(st.integers(smallest, 4), min_size=2, max_size=4)))
    every = [s for r in range(1, ways + 1) for s in combinations(range(len(sizes)), r)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
    weights = st.integers(1, 100).map(lambda i: Fraction(i, 100))
    return sizes, [MeasuredBlock(s, draw(st.booleans()), draw(weights)) for s in chosen]


@pytest.mark.slow
@settings(max_examples=60)
@given(workloads())
def test_of_gaussian_noise_it_is_that_of_the_worst_pair_of_records(workload):
    sizes, parts = workload
    kept = [p for p in parts if not p.centred or all(sizes[a] > 1 for a in p.attributes)]
    if not kept:
        return
    found = joint_sensitivity(sizes, kept, "l2")
    moved, present = by_brute_force(sizes, kept, "l2")
    if any(part.centred for part in kept):
        assert float(found.moved) == pytest.approx(moved, abs=1e-6)
    assert float(found.moved) >= moved - 1e-9
    assert float(found.present) == pytest.approx(present, abs=1e-6)
    assert float(found.present) >= present - 1e-9


@settings(max_examples=40)
@given(workloads())
def test_of_laplace_noise_it_is_too(workload):
    """Only columns of two cells are measured by differences."""
    sizes, parts = workload
    kept = [p for p in parts if not p.centred or all(sizes[a] == 2 for a in p.attributes)]
    if not any(part.centred for part in kept):
        return
    found = joint_sensitivity(sizes, kept, "l1")
    moved, present = by_brute_force(sizes, kept, "l1")
    assert float(found.moved) == pytest.approx(moved, abs=1e-6)
    assert float(found.moved) >= moved
    assert float(found.present) == pytest.approx(present, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=40)
@given(workloads(smallest=2))
def test_the_bound_for_many_columns_is_one(workload):
    sizes, parts = workload
    moved = joint_sensitivity(sizes, parts, "l2").moved
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensitivity, "MOST_LISTED", 0)
        bound = joint_sensitivity(sizes, parts, "l2").moved
    assert moved <= bound * Fraction(1000001, 1000000)


def test_the_bound_for_pairs_of_many_columns_is_hardly_larger():
    parts = [MeasuredBlock(s, True) for r in (1, 2) for s in combinations(range(16), r)]
    exact = joint_sensitivity((2,) * 16, parts, "l2").moved
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensitivity, "MOST_LISTED", 0)
        assert exact <= joint_sensitivity((2,) * 16, parts, "l2").moved <= exact * 1.02


def test_a_replaced_record_moves_residuals_by_more_than_twice_what_it_is():
    """What is often assumed, twice the squared norm of one record, would be too small."""
    parts = [MeasuredBlock(s, True) for s in combinations(range(16), 1)]
    moved, present = joint_sensitivity((2,) * 16, parts, "l2")
    assert float(moved) == pytest.approx(4 * 16)
    assert float(present) == pytest.approx(16)
