r"""How close synthetic records come to a table, found by drawing a release of a made-up table.

How well records made from pairs describe three columns depends on the data, and so does the distance
between non-negative integer counts and noisy ones.  Neither follows from the sizes of the tables.  So a
table is made up with the plan's cells and number of records, and with the dependence that surveys have:
a mixture of a few kinds of respondents, whose answers are independent within a kind (latent classes;
Lazarsfeld & Henry 1968).  The release is drawn a few times from it, records are made as for a bundle,
and

    distance    half the sum over a table's cells of |share of records - share in the made-up table|

is averaged over all tables of one, two or three columns.  Other tables give other distances, but mostly
in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, reduce, singledispatch
from itertools import combinations

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.base import Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.fitted import FittedTables
from dpcore.sampling.source import SeededSource

CLASSES, DRAWS = 4, 2

MOST_CELLS = 4096
"""Larger tables are not simulated, which takes up to a second."""

MOST_RECORDS = 20_000
"""More records than this hardly follow the tables any better."""

CLEARLY = 0.7
"""Records of a histogram are better if their distance is below this fraction of the others' distance.
Surveys have less dependence among three columns than the made-up table, which flatters histograms."""

WAYS = (1, 2, 3)


@singledispatch
def record_distances(release: Release) -> Mapping[int, float] | None:
    """The distances by number of columns; None if they are unknown or would take long, or if rules
    exclude records."""
    return None


@record_distances.register(Histogram)
@record_distances.register(FittedTables)
@lru_cache(maxsize=64)
def _(release: Histogram | FittedTables) -> Mapping[int, float] | None:
    domain = release.domain
    if domain.size > MOST_CELLS or release.adjacency.weighted:
        return None
    if release.rules or release.nested:
        return None
    table = made_up(domain, release.rows)
    known = np.flatnonzero(table)
    exact = release.statistic(Tally(domain, known, table[known]))
    rows = min(release.rows, MOST_RECORDS)
    release.require_memory(rows)
    found = []
    for seed in range(DRAWS):
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed))
        made = np.bincount(domain.pack(release.sample(noisy, rows)[1]), minlength=domain.size)
        found.append(distances(domain, made / rows, table / table.sum()))
    return {ways: float(np.mean([each[ways] for each in found])) for ways in found[0]}


def made_up(domain: Domain, rows: int) -> Integers:
    """Counts (cells,) of ``rows`` records that are drawn from a mixture of latent classes."""
    generator = np.random.default_rng(0)
    joint = np.zeros(domain.size)
    for weight in generator.dirichlet(np.ones(CLASSES)):
        sides = [generator.dirichlet(np.ones(size)) for size in domain.shape]
        joint += weight * reduce(np.multiply.outer, sides).ravel()
    return generator.multinomial(rows, joint / joint.sum())


def distances(domain: Domain, one: Floats, other: Floats) -> dict[int, float]:
    """The mean total variation distance between the margins of two tables, by number of columns."""
    apart, axes = (one - other).reshape(domain.shape), range(len(domain.shape))
    found = {}
    for ways in WAYS[: len(axes)]:
        gone = [tuple(a for a in axes if a not in kept) for kept in combinations(axes, ways)]
        total = sum(float(np.abs(apart.sum(axis=each)).sum()) / 2 for each in gone)
        found[ways] = total / math.comb(len(domain.shape), ways)
    return found
