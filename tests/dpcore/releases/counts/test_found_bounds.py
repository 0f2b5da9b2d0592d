"""Bounds hold the ranges that enough units are in, and an empty range hardly ever counts."""

import math

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.audit import Pair, ReleaseDraws
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.releases.counts.found import FOUND
from dpcore.releases.counts.found_bounds import EDGES, FALSE, LARGEST, FoundBounds, ranges
from dpcore.sampling.source import SeededSource

SEARCH = FoundBounds("b", ranges("pay"), 10_000, Budget.of("0.4"))
CELLS = len(EDGES) - 1


def noisy(**counts: int) -> Noisy:
    """A draw with these counts: names are `at` and the number of a range."""
    values = np.zeros(SEARCH.mechanism.size, dtype=np.int64)
    for name, count in counts.items():
        values[int(name.removeprefix("at"))] = count
    return Noisy(values)


def test_the_bounds_are_the_ends_of_the_first_and_the_last_range_above_the_threshold():
    enough, low, high = SEARCH.threshold + 1, EDGES.index(-2.0), EDGES.index(500.0)
    found = SEARCH.found(noisy(**{f"at{low}": enough, f"at{high}": enough, f"at{high + 3}": 1}))
    assert found == (-2.0, 1000.0)
    assert SEARCH.found(noisy(at0=enough - 1)) is None
    assert SEARCH.found(noisy(**{f"at{CELLS}": enough})) is None  # null is no range
    assert SEARCH.found(noisy(at0=enough)) is None
    assert SEARCH.found(noisy(**{"at0": enough, f"at{CELLS - 1}": enough})) == (-LARGEST, LARGEST)


def test_empty_ranges_are_within_the_bounds_as_rarely_as_is_stated_and_full_ones_as_often():
    times = 20_000
    full = EDGES.index(100.0)
    tally = Tally(SEARCH.domain, np.array([full]), np.array([SEARCH.needed]))
    draws = ReleaseDraws(SEARCH, Pair("", tally, tally)).draw(0, times, SeededSource(3))
    passed = draws > SEARCH.threshold
    kept = passed[:, full].mean()
    empty = np.delete(passed[:, :CELLS], full, axis=1).any(axis=1).mean()
    assert kept >= FOUND - 5 * np.sqrt(0.05 * 0.95 / times)  # a chance below 1e-6
    assert empty <= FALSE + 5 * np.sqrt(FALSE / times)
    assert empty >= FALSE / 3


def test_the_outer_ranges_have_no_end():
    (table,) = SEARCH.publish(Noisy(np.zeros(SEARCH.domain.size, dtype=int))).tables
    name = SEARCH.domain.names[0]
    first, last = table.columns[f"{name}_from"], table.columns[f"{name}_to"]
    assert (first[0], last[CELLS - 1]) == (-math.inf, math.inf)
    words = table.columns[f"{name}_bin"]
    assert (words[0], words[CELLS - 1]) == ("under -1e+16", "1e+16 or more")
