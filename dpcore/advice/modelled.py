r"""The expected error of the tables that synthetic records follow, before there is a draw.

A model of all tables removes noise from each (``dpcore.post.records.denoise``).  If the model expects m
records in a cell, the true number differs from m by chance and because the model is not exact.  With
noise of variance v the best guess then has the variance

    s^2 v / (s^2 + v),    s^2 = m + LACK m^2

so cells that hold hardly anybody have hardly any error, whatever the noise: a table of a column in which
nine people in ten have the same value is more accurate than a table of equally frequent values.  Here m
follows from assumed shares of the columns (``typical``), as if the columns were independent.

Each table of a column implies the column's one-way table, by summing cells.  If the errors of these
cells are independent, the variance of the sum falls by the same factor as the variances of the cells; if
the errors in a row are equal, it stays the variance of the noise.  We expect the geometric mean of the
two.  The model has to learn the columns first, so the errors of a table's columns add to the errors of
its cells.

For 95% of 140 one-way and pair tables, from three public surveys at alpha 2, the error was within a
factor of two of this estimate (``benchmarks.first_hour``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeVar

import numpy as np

from dpcore.arrays import Floats
from dpcore.post.tables.consistency import Agreement
from dpcore.releases.counts.unit import AsMeasured
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.microdata import Microdata

Columns = TypeVar("Columns")

LACK = 0.005
"""The squared relative error of a model of pairs in a cell; the relative error is about 1/14."""

BIASED = 1.25
"""The ratio of a column's error to the noise left in it, as fits are biased towards a model."""

MOST_TABLES = 12
"""At most this many tables are examined, to represent all."""

MEAN = math.sqrt(2 / math.pi)
"""The mean absolute value of a standard normal variable."""


def some_of(tables: Sequence[Columns]) -> list[Columns]:
    """At most ``MOST_TABLES`` of them, evenly spaced."""
    places = np.linspace(0, len(tables) - 1, min(len(tables), MOST_TABLES)).round().astype(int)
    return [tables[i] for i in places]


@dataclass(frozen=True, eq=False)
class ModelledTables:
    """Expected errors of modelled tables; ``shares``: for each column, the assumed share (cells,) of
    each cell."""

    release: Microdata | CompressedMicrodata
    shares: Mapping[str, Floats]

    def moved(self, names: Sequence[str]) -> float | None:
        """The share of records in wrong cells of the table of these columns; None if not drawn."""
        places = sorted(self.release.domain.names.index(name) for name in names)
        if not self._agreement.covers(places):
            return None
        alone = [self._alone(place) for place in places]
        if len(places) == 1:
            return alone[0]
        errors = np.sqrt(self._kept(places) * self._agreement.margin(places).variance)
        return math.hypot(self._as_share(errors), *alone)

    def apart(self, names: Sequence[str]) -> float | None:
        """The distance by which a bundle grades a table: from records to the noisy table, plus from
        there to the exact one.  The errors that a model removes and leaves are uncorrelated."""
        if (moved := self.moved(names)) is None:
            return None
        places = sorted(self.release.domain.names.index(name) for name in names)
        cells = math.prod(len(self._sides[place]) for place in places)
        noise = self._as_share(np.full(cells, self._agreement.margin(places).variance ** 0.5))
        return noise + math.sqrt(max(noise**2 - moved**2, 0.0))

    def outside(self, names: Sequence[str]) -> float:
        """The assumed share of records outside the largest cell of the table of these columns."""
        places = (self.release.domain.names.index(name) for name in names)
        return 1 - math.prod(float(self._sides[p].max() / self._sides[p].sum()) for p in places)

    @cached_property
    def _read(self) -> AsMeasured:
        return self.release.as_supposed(self.shares)

    @cached_property
    def _agreement(self) -> Agreement:
        found = self._read.agreement()
        assert found is not None
        return found

    @cached_property
    def _sides(self) -> list[Floats]:
        """For each column, the shares (cells,) of the cells in which it is measured."""
        groups = self._read.groups
        shares = [self.shares[name] for name in self.release.domain.names]
        return [
            np.asarray(np.bincount(groups[i], own) if i in groups else own, dtype=np.float64)
            for i, own in enumerate(shares)
        ]

    @cached_property
    def _tables(self) -> list[list[int]]:
        names = self.release.domain.names
        return [sorted(names.index(name) for name in of.names) for of in self._read.release.domains]

    def _kept(self, places: Sequence[int]) -> Floats:
        """The fraction of the noise variance that is left in each cell of a table."""
        model = self.release.rows * reduce(np.multiply.outer, (self._sides[p] for p in places))
        own = model + LACK * model**2
        return np.asarray(own / (own + self._agreement.margin(places).variance))

    def _alone(self, place: int) -> float:
        """The share of records in wrong cells of the one-way table of a column."""
        near = [of for of in self._tables if place in of and len(of) > 1]
        tables = [of for of in near if self._agreement.covers(of)]
        variance = np.full(len(self._sides[place]), self._agreement.margin([place]).variance)
        if tables:
            parts = [
                np.moveaxis(kept, of.index(place), 0).reshape(len(variance), -1).mean(1)
                for of in some_of(tables)
                for kept in (self._kept(of),)
            ]
            # The harmonic mean: the most precise tables determine the column.
            together = len(parts) / np.sum(1 / np.maximum(parts, 1e-12), axis=0)
            variance = variance * np.sqrt(together)
        return BIASED * self._as_share(np.sqrt(variance))

    def _as_share(self, errors: Floats) -> float:
        """Half the expected sum of absolute normal errors, as a share of the records."""
        return float(errors.sum()) * MEAN / (2 * max(self.release.rows, 1))
