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
from functools import singledispatch

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
    shape, every = release.domain.shape, _draws_every(release)
    groups: dict[Attributes, list[Attributes]] = {}
    for attrs in tables:
        key = tuple(sorted(shape[a] for a in attrs)) if every else attrs
        groups.setdefault(key, []).append(attrs)
    return sorted(groups.values(), key=lambda group: math.prod(shape[a] for a in group[0]))


@singledispatch
def _draws_every(release: Dense) -> bool:
    """Whether the release draws all tables of some number of columns, with equal noise."""
    return True


@_draws_every.register
def _(release: FittedTables) -> bool:
    (ways, *others) = {len(attrs) for attrs in release.tables}
    every = not others and len(release.tables) == math.comb(len(release.domain.shape), ways)
    # Stated weights may differ between tables of one shape.
    return every and not isinstance(release.aim, tuple)


@singledispatch
def cell_variances(release: Dense) -> Callable[[Attributes], float]:
    """A function from columns, all in one drawn table, to the variance of each cell of their table.

    By default the cells are summed from one table of all columns.
    """
    return _summed(release)


@cell_variances.register
def _(release: FittedTables) -> Callable[[Attributes], float]:
    whole = release.tables == (tuple(range(len(release.domain.shape))),)
    if whole and isinstance(release.mechanism, DiscreteGaussian):
        return _summed(release)
    step = float(release.step)
    return lambda attrs: float(release.cell_variances([attrs])[0]) * step**2


def _summed(release: Dense) -> Callable[[Attributes], float]:
    shape, step, mechanism = release.domain.shape, float(release.step), release.mechanism
    assert isinstance(mechanism, DiscreteGaussian | LaplaceNoise)
    drawn, known = (mechanism.stddev * step) ** 2, release.adjacency.public_rows

    def summed(attrs: Attributes) -> float:
        cells = math.prod(shape[a] for a in attrs)
        return drawn * release.domain.size / cells * (1 - known / cells)

    return summed
