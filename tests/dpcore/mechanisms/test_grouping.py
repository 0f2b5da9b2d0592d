"""Cells are merged into groups by noisy counts, within their kinds."""

import numpy as np
import pytest

from dpcore.mechanisms.grouping import kinds_of, least_groups, merge_cells


def merged_naively(noisy: np.ndarray, kinds: np.ndarray, keep: int, ordered: bool) -> np.ndarray:
    """The oracle: look at all neighbours again after every merge."""
    order = np.arange(len(noisy)) if ordered else np.lexsort((noisy, kinds))
    runs = [[cell] for cell in order.tolist()]
    empty = list[list[int]]()
    for cell in order.tolist():
        last = empty[-1][-1] if empty else None
        if last is not None and max(noisy[[last, cell]]) <= 0 and kinds[last] == kinds[cell]:
            empty[-1].append(cell)
        else:
            empty.append([cell])
    if len(empty) >= keep:
        runs = empty

    def mass(run: list[int]) -> int:
        return int(noisy[run].sum())

    while len(runs) > keep:
        alike = [
            (mass(runs[i]) + mass(runs[i + 1]), runs[i][0], i)
            for i in range(len(runs) - 1)
            if kinds[runs[i][0]] == kinds[runs[i + 1][0]]
        ]
        place = {run[0]: i for i, run in enumerate(runs)}
        rank = {cell: i for i, cell in enumerate(order.tolist())}
        _, first, _ = min(alike, key=lambda found: (found[0], rank[found[1]]))
        i = place[first]
        runs[i : i + 2] = [runs[i] + runs[i + 1]]
    groups = np.empty(len(noisy), dtype=int)
    for number, run in enumerate(sorted(runs, key=min)):
        groups[run] = number
    return groups


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_groups_are_those_of_the_naive_search(ordered: bool, seed: int):
    generator = np.random.default_rng(seed)
    noisy = generator.integers(-5, 60, 40)
    kinds = np.sort(generator.integers(0, 3, 40))
    for keep in (3, 10, 39, 40):
        found = merge_cells(noisy, kinds, keep, ordered=ordered)
        assert found.tolist() == merged_naively(noisy, kinds, keep, ordered).tolist()
        assert len(np.unique(found)) == keep


@pytest.mark.parametrize("ordered", [True, False])
def test_cells_of_different_kinds_stay_apart_and_null_is_the_last_group(ordered: bool):
    kinds = kinds_of(12, True, [{0, 1, 2}, {2, 3, 4, 5}])
    assert len(np.unique(kinds)) == 5  # 0 1 | 2 | 3 4 5 | 6 .. 10 | null
    groups = merge_cells(np.zeros(12, dtype=np.int64), kinds, 5, ordered=ordered)
    assert groups.tolist() == [0, 0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4]
    assert least_groups(kinds, ordered) == 5


def test_a_kind_in_two_runs_takes_two_groups_if_ordered_and_one_otherwise():
    kinds = kinds_of(5, False, [{1, 2}])
    assert least_groups(kinds, True) == 3
    assert least_groups(kinds, False) == 2


def test_large_categories_stay_alone_and_the_rare_ones_are_merged():
    noisy = np.array([3, 5000, -7, 800, 1, 2, 900])
    groups = merge_cells(noisy, np.zeros(7), 4, ordered=False)
    assert sorted(np.bincount(groups).tolist()) == [1, 1, 1, 4]


def test_noise_in_many_empty_bins_does_not_take_groups_from_those_that_hold_records():
    generator = np.random.default_rng(6)
    exact = np.repeat([0, 60], [130, 100])
    noisy = exact + np.rint(generator.normal(0, 50, 230)).astype(np.int64)
    groups = merge_cells(noisy, np.zeros(230), 15, ordered=True)
    shares = np.bincount(groups, exact) / exact.sum()
    assert 1 / np.sum(shares**2) > 11  # counted without what is negative, 8


def test_a_sum_that_was_merged_is_what_its_cells_hold_together():
    noisy = np.array([-40, 30, 20, 9, 50])
    groups = merge_cells(noisy, np.zeros(5), 3, ordered=True)
    assert groups.tolist() == [0, 0, 0, 1, 2]
