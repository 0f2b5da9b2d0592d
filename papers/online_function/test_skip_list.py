"""Neighbours in a skip list are those of a sorted list, found in few steps."""

import bisect

import numpy as np
import pytest

from papers.online_function.skip_list import SkipList


@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
def test_neighbours_are_those_of_a_sorted_list(order: str):
    keys = list(np.random.default_rng(1).choice(10**6, 600, replace=False))
    keys = {"random": keys, "ascending": sorted(keys), "descending": sorted(keys)[::-1]}[order]
    line: SkipList[int] = SkipList()
    known: list[int] = []
    for key in keys:
        place = bisect.bisect_left(known, key)
        below, above = line.neighbours(key)
        assert (below and below[0]) == (known[place - 1] if place else None)
        assert (above and above[0]) == (known[place] if place < len(known) else None)
        line.insert(key, -key)
        known.insert(place, key)
        assert line.neighbours(key)[1] == (key, -key)


def test_an_empty_list_has_no_neighbours():
    assert SkipList[int]().neighbours(3) == (None, None)


class Counting(int):
    """A key that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        Counting.comparisons += 1
        return int(self) < int(other)


@pytest.mark.parametrize("descending", [False, True])
def test_comparisons_grow_with_the_logarithm(descending: bool):
    line: SkipList[None] = SkipList()
    worst = {}
    for count in range(1, 4097):
        line.insert(Counting(-count if descending else count), None)
        if count in (256, 4096):
            probes = []
            for key in range(1, count, 17):
                Counting.comparisons = 0
                line.neighbours(Counting(-key if descending else key))
                probes.append(Counting.comparisons)
            worst[count] = float(np.mean(probes))
    assert worst[4096] < 2 * worst[256] < 100
