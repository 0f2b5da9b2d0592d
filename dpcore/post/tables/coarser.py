"""Tables that agree, read in fewer cells than some of them were measured in.

Income was measured in 9 cells beside age and in 27 beside sex, which are two attributes of an agreement.
Read in the 9, its table with sex is a sum over cells of the other.  Sums have exact errors, which are
those of the finer cells.

>>> finer = Agreement((2, 2, 3), [Margin((0, 2), np.arange(6.0).reshape(2, 3), 1.0)], None)
>>> read = CoarserAgreement((2, 2), finer.measured, None, finer, (0, 1), {1: (2, np.array([0, 0, 1]))})
>>> read.margin((0, 1)).table.tolist()
[[1.0, 2.0], [7.0, 5.0]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes, Margin


@dataclass(frozen=True, eq=False)
class CoarserAgreement(Agreement):
    """``inner``: what was measured; ``places``: the attribute in it of each attribute here;
    ``finer``: by attribute here, another one in it, and the cell here of each of its cells."""

    inner: Agreement
    places: tuple[int, ...]
    finer: Mapping[int, tuple[int, Integers]]

    def covers(self, attributes: Sequence[int]) -> bool:
        return self._measured_as(attributes) is not None

    def margin(self, attributes: Sequence[int]) -> Margin:
        """The table, and the mean variance of its cells, which hold different numbers of finer ones."""
        source = self._required(attributes)
        found = self.inner.margin(source)
        table, cells = found.table, found.table.size
        for axis, (here, there) in enumerate(zip(sorted(attributes), source, strict=True)):
            if there != self.places[here]:
                held = self.finer[here][1][:, None] == np.arange(self.sizes[here])
                table = np.moveaxis(np.moveaxis(table, axis, -1) @ held, -1, axis)
        return Margin(tuple(sorted(attributes)), table, found.variance * cells / table.size)

    def combination_covariance(self, several: Sequence[Mapping[Attributes, Floats]]) -> Floats:
        return self.inner.combination_covariance([self._spread(weights) for weights in several])

    def _spread(self, weights: Mapping[Attributes, Floats]) -> dict[Attributes, Floats]:
        """The weights of the finer cells that sums are made of."""
        found: dict[Attributes, Floats] = {}
        for attributes, weight in weights.items():
            source = self._required(attributes)
            spread = np.reshape(weight, [self.sizes[a] for a in attributes])
            for axis, (here, there) in enumerate(zip(attributes, source, strict=True)):
                if there != self.places[here]:
                    spread = np.take(spread, self.finer[here][1], axis=axis)
            found[source] = found.get(source, 0.0) + spread
        return found

    def _required(self, attributes: Sequence[int]) -> Attributes:
        source = self._measured_as(attributes)
        if source is None:
            raise ValueError(f"no measurement covers the attributes {tuple(attributes)}")
        return source

    def _measured_as(self, attributes: Sequence[int]) -> Attributes | None:
        """The attributes of the most precise table that covers these."""
        choices = [
            (self.places[a], *([self.finer[a][0]] if a in self.finer else []))
            for a in sorted(attributes)
        ]
        known = [each for each in product(*choices) if self.inner.covers(each)]
        if len(known) < 2:
            return known[0] if known else None
        return min(known, key=lambda each: self._variance(attributes, each))

    def _variance(self, attributes: Sequence[int], source: Attributes) -> float:
        margin = self.inner.margin(source)
        return margin.variance * margin.table.size / np.prod([self.sizes[a] for a in attributes])
