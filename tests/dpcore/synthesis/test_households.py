"""Synthetic households are whole, and agree in what they share."""

import numpy as np
import pytest

from dpcore.synthesis.households import group_households


@pytest.mark.parametrize("rows", [0, 1, 2000])
def test_households_are_whole_and_agree_but_for_one_of_each_kind(rows: int):
    random = np.random.default_rng(3)
    sizes = random.integers(1, 6, rows)
    shared = random.integers(0, 3, (rows, 2))
    numbers = group_households(sizes, shared, np.random.default_rng(1))
    assert sorted(set(numbers.tolist())) == list(range(1, len(set(numbers.tolist())) + 1))
    incomplete = []
    for household in range(1, numbers.max(initial=0) + 1):
        members = numbers == household
        kind = np.unique(np.column_stack([sizes, shared])[members], axis=0)
        assert len(kind) == 1  # one size, and what they share
        if members.sum() != kind[0, 0]:
            assert members.sum() < kind[0, 0]
            incomplete.append(tuple(kind[0]))
    assert len(incomplete) == len(set(incomplete))


def test_who_lives_together_is_chance():
    """Of many pairs of one size, neighbours in the table are no more often together than others."""
    sizes, nothing = np.full(1000, 2), np.empty((1000, 0), dtype=np.int64)
    numbers = group_households(sizes, nothing, np.random.default_rng(1))
    assert (numbers[::2] == numbers[1::2]).sum() < 10
    assert np.bincount(numbers)[1:].tolist() == 500 * [2]


def test_a_record_without_a_size_is_in_no_household_and_changes_none():
    sizes = np.random.default_rng(3).integers(1, 4, 200)
    unknown = np.arange(200) % 3 == 0
    nothing = np.empty((200, 0), dtype=np.int64)
    numbers = group_households(
        np.ma.masked_array(sizes, mask=unknown), nothing, np.random.default_rng(1)
    )
    assert np.ma.getmaskarray(numbers).tolist() == unknown.tolist()
    others = group_households(sizes[~unknown], nothing[~unknown], np.random.default_rng(1))
    assert numbers.compressed().tolist() == others.tolist()
