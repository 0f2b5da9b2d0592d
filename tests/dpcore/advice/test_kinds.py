"""The comparison of kinds follows public sizes, and its distances are those of simulated releases."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.advice.kinds import alike, best, compared
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
@pytest.mark.parametrize(
    "sizes", [(3, 3, 3, 3), pytest.param((2, 5, 4, 3), marks=pytest.mark.slow)]
)
def test_distances_are_those_of_simulated_noise(sizes, adjacency):
    of, columns = domain(*sizes), range(len(sizes))
    releases = [
        Histogram("h", of, 10_000, Budget.of("1"), adjacency=adjacency),
        pairs(of, adjacency=adjacency),
        pairs(of, ways=3, adjacency=adjacency),
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


def test_weights_and_their_step_change_nothing_but_the_scale():
    plain = compared(pairs(domain(3, 3, 3), rows=1000, adjacency=ADDED))
    heavy = Adjacency("add-remove", 1, weighted=True)
    steps = compared(pairs(domain(3, 3, 3), 1000, adjacency=heavy, step=Fraction(1, 2)))
    for one, other in zip(plain, steps, strict=True):
        for ways, distance in one.distances.items():
            assert distance == pytest.approx(other.distances[ways])


def test_what_cannot_be_compared_is_left_out():
    assert compared(pairs(domain(3, 3))) == []
    rare = Histogram("h", domain(3, 3, 3), 100, Budget.of("1"), thresholded=True)
    assert compared(rare) == []
    wide = [kind.name for kind in compared(pairs(domain(*[40] * 6)))]
    assert wide == [PAIRS, "margins, ways: [2, 3]", "margins, ways: 3"]
    assert len(compared(pairs(domain(*[2] * 30)))) == 1


def test_the_other_noise_is_named_where_it_is_less():
    share = ("1", "1e-9")
    few = compared(pairs(domain(3, 3, 3), share=share, noise="discrete-gaussian"))
    many = compared(pairs(domain(*[3] * 8), share=share, noise="discrete-gaussian"))
    assert few[1].name == "margins, ways: 2, discrete-laplace"
    assert "margins, ways: 2, discrete-laplace" not in [kind.name for kind in many]


def test_records_take_a_histogram_only_while_its_noise_leaves_most_cells_right():
    """As on the made-up table of 2^12 cells in which records of pairs are three times as near."""
    large, small = compared(pairs(domain(*[2] * 12), 20_000)), compared(pairs(domain(*[2] * 6)))
    assert best(large, 2).name == "histogram"
    assert best(large, 2, records=True).name == PAIRS
    assert best(small, 2, records=True).name == "histogram"


def test_no_distance_is_above_one():
    found = compared(pairs(domain(9, 9, 9), 2))
    assert max(distance.mean for kind in found for distance in kind.distances.values()) == 1


def test_as_many_sets_as_pairs_need_not_be_the_pairs():
    mixed = Margins("m", domain(2, 2, 2), 100, Budget.of("1"), sets=((0,), (0, 1), (1, 2)))
    assert compared(mixed)[0].distances[2].measured == 2
    assert [len(group) for group in alike(mixed, [(0,), (1,), (2,)])] == [1, 1, 1]
