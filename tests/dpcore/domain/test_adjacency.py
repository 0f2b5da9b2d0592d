"""Sensitivity as a function of the neighbouring relation, against all small units of records."""

from itertools import chain, combinations, combinations_with_replacement, product

import numpy as np
import pytest

from dpcore.domain.adjacency import TAPER_ERROR, Adjacency

ADDED = Adjacency("add-remove")
TERMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, -0.8], [0.2, 0.1]])


def units(most):
    """Sums of the terms of every unit of at most so many records."""
    sizes = (combinations_with_replacement(range(len(TERMS)), k) for k in range(most + 1))
    return [TERMS[list(unit)].sum(axis=0) for unit in chain.from_iterable(sizes)]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_no_unit_moves_a_sum_by_more(relation, most, order):
    adjacency = Adjacency(relation, most)
    moved = max(np.linalg.norm(a - b, order) for a, b in product(TERMS, TERMS))
    present = max(np.linalg.norm(a, order) for a in TERMS)
    if relation == "add-remove":
        seen = max(np.linalg.norm(unit, order) for unit in units(most))
    elif most == 1:
        seen = max(np.linalg.norm(a - b, order) for a, b in product(TERMS, TERMS))
    else:
        seen = max(np.linalg.norm(a - b, order) for a, b in product(units(most), repeat=2))
    stated = adjacency.sensitivity(moved=moved, present=present)
    assert seen == pytest.approx(stated)
    assert adjacency.squared(moved=moved**2, present=present**2) == pytest.approx(stated**2)


def test_only_records_replaced_one_by_one_leave_the_rows_public():
    assert Adjacency().public_rows
    assert not Adjacency("add-remove").public_rows
    assert not Adjacency("replace-one", 2).public_rows
    assert not Adjacency(weighted=True).public_rows
    assert not Adjacency(unit="household").public_rows


def test_the_relation_is_read_back_as_it_was_written():
    for written, adjacency in (
        ({"neighbours": "replace-one"}, Adjacency()),
        (
            {"neighbours": "add-remove", "most": "3", "weighted": "yes", "unit": "household"},
            Adjacency("add-remove", 3, weighted=True, unit="household"),
        ),
    ):
        assert adjacency.to_dict() == written
        assert Adjacency.from_dict(written | {"event": "discrete-laplace"}) == adjacency


def test_a_guess_of_the_rows_leaves_room_for_many_more():
    assert Adjacency().most_rows(100) == 100
    assert Adjacency("add-remove").most_rows(100) == 102_400


def test_a_unit_of_no_records_and_an_unknown_relation_are_refused():
    with pytest.raises(ValueError, match="max_rows: must be positive, not 0"):
        Adjacency(most=0)
    with pytest.raises(ValueError, match="must be replace-one or add-remove, not 'swap'"):
        Adjacency("swap")  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [1, 2, 5, 8])
def test_tapered_sums_are_bounded_and_no_farther_apart_than_sums(most):
    share = [ADDED.taper(records, most) for records in range(12 * most)]
    assert max(records * each for records, each in enumerate(share)) <= most * (1 + TAPER_ERROR)
    for before, after in combinations(range(12 * most), 2):
        apart = share[after] * (after - before) + before * (share[before] - share[after])
        assert apart <= (after - before) * (1 + TAPER_ERROR)
    assert Adjacency().taper(10**9, most) == 1.0
