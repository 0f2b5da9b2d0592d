"""The expected distances of small tables are those of simulated releases."""

from itertools import combinations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.advice.usable import table_error
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.margins import MarginTables

ADDED = Adjacency("add-remove")


def domain(*sizes: int) -> Domain:
    return Domain(tuple(Categories(f"c{i}", tuple(range(s))) for i, s in enumerate(sizes)))


def pairs(of: Domain, rows=10_000, share=("1",), ways=2, **more) -> MarginTables:
    sets = tuple(combinations(range(len(of.axes)), ways))
    return MarginTables("pairs", of, rows, Budget.of(*share), sets=sets, **more)


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


@pytest.mark.slow
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
        for ways in range(1, len(sizes) + 1):
            tables = [*combinations(columns, ways)]
            stated = [table_error(release, [of.names[a] for a in table]) for table in tables]
            if None in stated:
                continue
            drawn = [simulated(release, table) for table in tables]
            most = 1.3 if ways == len(sizes) else 1.1  # Laplace noise that is not summed
            assert 0.9 < np.mean(stated) / np.mean(drawn) < most
