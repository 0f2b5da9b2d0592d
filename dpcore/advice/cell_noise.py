"""The noise in a cell of a small table, measured directly or summed from cells that a release draws.

A table over a few of k columns is summed from a histogram of all columns, or comes from tables of all
pairs or triples.  A histogram is one table with little noise in a cell, but sums over many cells; pairs
have few cells, but divide the share among themselves:

    drawn         tables         noise in a drawn cell (Laplace)    a cell of a pair is a sum of
    histogram     1              s                                  all cells / cells of the pair
    pairs         k (k - 1)/2    k (k - 1)/2 s                      1, and fitting helps

So a histogram is more accurate if it has few cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpcore.mechanisms import DiscreteGaussian
from dpcore.mechanisms.laplace import LaplaceNoise
from dpcore.post.tables.margins import Attributes
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.fitted import FittedTables

Dense = Histogram | FittedTables


def alike(release: Dense, tables: Sequence[Attributes]) -> list[list[Attributes]]:
    """Groups of tables with equal error, the group with the smallest tables first.

    If all tables of, say, two columns are drawn, columns with equally many cells are interchangeable.
    """
    shape, every = release.domain.shape, True
    if isinstance(release, FittedTables):
        (ways, *others) = {len(attrs) for attrs in release.tables}
        every = not others and len(release.tables) == math.comb(len(shape), ways)
        # Stated weights may differ between tables of one shape.
        every = every and not isinstance(release.aim, tuple)
    groups: dict[Attributes, list[Attributes]] = {}
    for attrs in tables:
        key = tuple(sorted(shape[a] for a in attrs)) if every else attrs
        groups.setdefault(key, []).append(attrs)
    return sorted(groups.values(), key=lambda group: math.prod(shape[a] for a in group[0]))


def cell_variances(release: Dense) -> Callable[[Attributes], float]:
    """A function: the variance of each cell of the table over given columns, all in one drawn table."""
    shape, step, mechanism = release.domain.shape, float(release.step), release.mechanism
    if isinstance(release, FittedTables) and not (
        release.tables == (tuple(range(len(shape))),) and isinstance(mechanism, DiscreteGaussian)
    ):
        margins = release
        return lambda attrs: float(margins.cell_variances([attrs])[0]) * step**2
    assert isinstance(mechanism, DiscreteGaussian | LaplaceNoise)
    drawn, known = (mechanism.stddev * step) ** 2, release.adjacency.public_rows

    def summed(attrs: Attributes) -> float:
        cells = math.prod(shape[a] for a in attrs)
        return drawn * release.domain.size / cells * (1 - known / cells)

    return summed
