"""The comparison of kinds follows public sizes, and its distances are those of simulated releases."""

from itertools import combinations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.advice.kinds import best, compared
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.margins import Margins

PAIRS = "margins, ways: 2"
ADDED = Adjacency("add-remove")


def domain(*sizes: int) -> Domain:
    return Domain(tuple(Categories(f"c{i}", tuple(range(s))) for i, s in enumerate(sizes)))


def pairs(of: Domain, rows=10_000, share=("1",), ways=2, **more) -> Margins:
    sets = tuple(combinations(range(len(of.axes)), ways))
    return Margins("pairs", of, rows, Budget.of(*share), sets=sets, **more)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((2,) * 6, ["histogram"] * 3),
        ((4, 4, 4), ["histogram"] * 3),
        ((2,) * 16, [PAIRS, PAIRS, "histogram"]),
        ((10,) * 6, [PAIRS, PAIRS, "margins, ways: 3"]),
    ],
)
def test_the_best_kind_follows_from_the_sizes(sizes, expected):
    found = compared(pairs(domain(*sizes), rows=10**7))
    assert [best(found, ways).name for ways in (1, 2, 3)] == expected


def simulated(release, table: tuple[int, ...], draws=60) -> float:
    """The mean distance of one table of a release of no records, by drawing its noise."""
    generator, shape = np.random.default_rng(3), release.domain.shape
    distances = []
    for _ in range(draws):
        if isinstance(release, Histogram):
            noise = release.mechanism.simulate(release.domain.size, generator).reshape(shape)
            left = noise - noise.mean() * release.adjacency.public_rows
            left = left.sum(axis=tuple(a for a in range(len(shape)) if a not in table))
        else:
            drawn = release.mechanism.simulate(release.mechanism.size, generator)
            agreed = release.consistent_margins(Noisy(drawn))
            found = next(m for m in agreed if set(table) <= set(m.attributes))
            axes = tuple(i for i, a in enumerate(found.attributes) if a not in table)
            left = found.table.sum(axis=axes)
            if (
                release.adjacency.public_rows
            ):  # the tables add up to the rows, the exact ones to none
                left = left - release.rows / left.size
        distances.append(np.abs(left).sum() / 2 / release.rows)
    return float(np.mean(distances))


@pytest.mark.parametrize("adjacency", [Adjacency(), ADDED], ids=["public rows", "private rows"])
@pytest.mark.parametrize("sizes", [(2, 4, 3, 3)])
def test_distances_are_those_of_simulated_noise(sizes, adjacency):
    of, columns = domain(*sizes), range(len(sizes))
    releases = [
        Histogram("h", of, 10_000, Budget.of("1"), adjacency=adjacency),
        pairs(of, adjacency=adjacency),
        pairs(of, ways=3, adjacency=adjacency, aim="balanced"),
        pairs(of, share=("1", "1e-6"), noise="discrete-gaussian", adjacency=adjacency),
    ]
    for release in releases:
        stated = compared(release)[0]
        assert stated.planned
        for ways, (value, *_) in stated.distances.items():
            drawn = [simulated(release, table) for table in combinations(columns, ways)]
            most = 1.3 if ways == len(sizes) else 1.1  # Laplace noise that is not summed
            assert 0.9 < value / np.mean(drawn) < most


def test_a_table_that_no_drawn_one_covers_is_not_measured():
    found = {kind.name: kind for kind in compared(pairs(domain(3, 3, 3, 3)))}
    assert set(found[PAIRS].distances) == {1, 2}
    assert set(found["histogram"].distances) == {1, 2, 3, 4}
    some = Margins("m", domain(3, 3, 3), 100, Budget.of("1"), sets=((0, 1), (1, 2)))
    own = compared(some)[0]
    assert own.name == "margins, 2 sets"
    assert {ways: tuple(found[1:]) for ways, found in own.distances.items()} == {
        1: (3, 3),
        2: (2, 3),
    }
    assert (own.of_all(1) is None, own.of_all(2)) == (False, None)


def test_what_cannot_be_compared_is_left_out():
    assert compared(pairs(domain(3, 3))) == []
    rare = Histogram("h", domain(3, 3, 3), 100, Budget.of("1"), thresholded=True)
    assert compared(rare) == []
    wide = [kind.name for kind in compared(pairs(domain(*[40] * 6)))]
    assert wide == [PAIRS, "margins, ways: [2, 3]", "margins, ways: 3"]
    assert len(compared(pairs(domain(*[2] * 30)))) == 1
