"""Quality criteria for synthetic records: how much they differ from the rows of the survey.

R records are public; n rows are private.  N is their public number: n itself, or an estimate if n is
private.  Each criterion has a value v that one row changes by at most 1, and v/N, or 2 v/N, is reported:

    distance        sum over cells |c R - r M| / 2 R      c rows and r records are in a cell; M is N or
                                                          n; for M = n, v/n is the total variation
                                                          distance
    largest         max over cells |c R - r n| / R
    contradictions  r n/R - c                             c rows and r records break a rule
    prediction      c - r n/R                             c, r: sums over rows and records of errors in
                                                          [0, 1] of a predictor fitted to the records
    means           sum over groups |S| / 2               S: sum over a group's rows of a value in [0, 1]
                                                          minus its mean in the group's records
    copies          u / 2                                 u rows are alone in their cell of all columns,
                                                          and a record is there too

If N is wrong, published values are wrong by the factor n/N, and distances with M = N by at most
|n/N - 1|/2, because c/N is wrong by this factor.

**Lemma.**  Adding a row to a table, or removing one, moves v by at most 1, and by 1/2 for means, copies
and distances with M = N; replacing one moves it by at most 1.  *Proof.*  A row adds R to one c R, and R
in all to the r M if M = n; replacing it changes two cells.  A largest value moves by at most as much as
the cell that moves most: by 1 - r/R where the row is, and by r/R elsewhere.  A row adds a number from 0
to 1 to c, and r/R to r n/R.  It adds a number from -1 to 1 to one S, and replacing it changes two.  It
changes whether one cell has exactly one row, and replacing it changes two cells.  The average of
distances changes by no more than each of them.  QED

The published value is v ``STEPS`` rounded down to a whole number: it changes by at most ``STEPS`` times
as much as v does, rounded up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis, Categories, in_order
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.post.records.rules import Rule, breaks_rules

STEPS = 2**10
"""The number of steps per row in a value; even, so that half a row is a whole number."""

EXACT = 2**62
"""Sums below this are exact in 64 bits."""


@dataclass(frozen=True)
class Criterion(ABC):
    """A requirement on records; ``at_most``: the largest allowed value; ``words``: its meaning."""

    words: str
    at_most: float

    @property
    def present(self) -> Fraction:
        """The change of the value if one row is added or removed."""
        return Fraction(1)

    @property
    def factor(self) -> int:
        """The published value is the value per row times this factor."""
        return 1

    @property
    def signed(self) -> bool:
        """Whether the value may be negative."""
        return True

    def wrong(self, value: Floats) -> Floats:
        """The largest error of a published value, divided by the relative error of N."""
        return np.abs(value)

    @abstractmethod
    def steps(self, rows: Tally, size: int, records: Tally) -> int:
        """The value in steps, private; ``rows``: private; ``size``: the public number N of rows."""


@dataclass(frozen=True)
class Distance(Criterion):
    """The mean total variation distance of some tables, each over a set of columns; ``own``: whether M
    is the private number of rows."""

    sets: tuple[tuple[str, ...], ...] = ()
    own: bool = False

    @property
    def present(self) -> Fraction:
        return Fraction(1) if self.own else Fraction(1, 2)

    @property
    def signed(self) -> bool:
        return False

    def wrong(self, value: Floats) -> Floats:
        return super().wrong(value) if self.own else np.full_like(value, 0.5)

    def steps(self, rows: Tally, size: int, records: Tally) -> int:
        size = rows.total if self.own else size
        apart = sum(int(_apart(rows, size, records, names).sum()) for names in self.sets)
        return STEPS * apart // (2 * records.total * len(self.sets))


@dataclass(frozen=True)
class Largest(Criterion):
    """The largest difference between the shares of a cell in the rows and in the records, over some
    tables."""

    sets: tuple[tuple[str, ...], ...] = ()

    @property
    def signed(self) -> bool:
        return False

    def steps(self, rows: Tally, size: int, records: Tally) -> int:
        apart = (_apart(rows, rows.total, records, names) for names in self.sets)
        return STEPS * max(int(each.max(initial=0)) for each in apart) // records.total


def _apart(rows: Tally, size: int, records: Tally, names: tuple[str, ...]) -> Integers:
    """|c R - r N| in each cell that is not empty, exactly."""
    first, second, number = rows.roll_up(names), records.roll_up(names), records.total
    cells = np.concatenate([first.cells, second.cells])
    # Sums that overflow would break the lemma, so large ones are Python's whole numbers.
    kind = np.int64 if number * rows.total + number * size < EXACT else object
    signed = np.concatenate(
        [first.counts.astype(kind) * number, second.counts.astype(kind) * -size]
    )
    return np.asarray(np.abs(Tally.of(first.domain, cells, signed).counts))


@dataclass(frozen=True)
class Contradictions(Criterion):
    """The share of records that break a rule, minus the share of rows."""

    rules: tuple[Rule, ...] = ()

    def steps(self, rows: Tally, size: int, records: Tally) -> int:
        number = records.total
        return STEPS * (self._broken(records) * rows.total - self._broken(rows) * number) // number

    def _broken(self, tally: Tally) -> int:
        return int(tally.counts[breaks_rules(_codes(tally), self.rules)].sum())


@dataclass(frozen=True)
class OfHalves(Criterion):
    """A criterion whose value changes by 1/2 if one row is added or removed, and is not negative."""

    @property
    def present(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def factor(self) -> int:
        return 2

    @property
    def signed(self) -> bool:
        return False


@dataclass(frozen=True)
class Copies(OfHalves):
    """The share of rows that are alone in their cell of all columns, if a record is in it too."""

    def steps(self, rows: Tally, size: int, records: Tally) -> int:
        alone, there = rows.cells[rows.counts == 1], records.cells
        # Neither lists a cell twice, so cells that occur twice are in both.
        both = Tally.of(rows.domain, np.concatenate([alone, there]))
        return STEPS // 2 * int((both.counts == 2).sum())


@dataclass(frozen=True)
class Prediction(Criterion):
    """The mean error of a predictor over the rows, minus its mean error over the records.

    The predictor is fitted to the records by least squares.  It predicts each category of the response,
    or its number.  Its error is the probability that it gives to other categories, or the distance from
    the number as a fraction of the response's range.  Null is a category.
    """

    response: str = ""
    by: tuple[str, ...] = ()

    def steps(self, rows: Tally, size: int, records: Tally) -> int:
        number = records.total
        names = (self.response, *self.by)
        rows, records = rows.roll_up(names), records.roll_up(names)  # far fewer cells
        effects = self._fitted(records)
        of_rows, of_records = (self._error(tally, effects) for tally in (rows, records))
        return (of_rows * number - of_records * rows.total) // number

    def _fitted(self, records: Tally) -> list[Floats]:
        """The terms (cells, responses) of a prediction, for the constant and each cell of each
        column."""
        features = [_features(records, name) for name in self.by]
        known = [each[codes] for each, codes in zip(features, self._codes(records), strict=True)]
        columns = np.concatenate([np.ones((len(records.counts), 1)), *known], axis=1)
        root = np.sqrt(records.counts.astype(np.float64))[:, None]
        wanted = self._wanted(records) * root
        weights = np.linalg.lstsq(columns * root, wanted, rcond=1e-8)[0]
        parts = np.split(weights, np.cumsum([1, *(each.shape[1] for each in features)])[:-1])
        return [
            parts[0],
            *(np.asarray(each @ part) for each, part in zip(features, parts[1:], strict=True)),
        ]

    def _error(self, tally: Tally, effects: list[Floats]) -> int:
        """The sum over a tally of errors in steps.

        Each row's error is the same in every table: effects are added element by element, not by a
        matrix product, whose rounding may depend on the number of rows.
        """
        found = np.broadcast_to(effects[0], (len(tally.counts), effects[0].shape[1]))
        for effect, codes in zip(effects[1:], self._codes(tally), strict=True):
            found = found + effect[codes]
        apart = np.abs(np.clip(found, 0, 1) - self._wanted(tally)).max(axis=1, initial=0)
        steps = np.floor(STEPS * np.clip(apart, 0, 1)).astype(object)
        return int((steps * tally.counts).sum())

    def _codes(self, tally: Tally) -> list[Integers]:
        return [tally.codes(tally.domain.positions[name]) for name in self.by]

    def _wanted(self, tally: Tally) -> Floats:
        features = _features(tally, self.response)
        wanted: Floats = features[tally.codes(tally.domain.positions[self.response])]
        return wanted


@dataclass(frozen=True)
class MeanDifference(OfHalves):
    """The absolute difference between a group's mean in rows and in records, averaged over groups with
    their rows as weights, as a fraction of the column's range.

    For two categories, a mean is the share of the second.  Nulls do not count; a group without records
    has the mean of all records.
    """

    response: str = ""
    by: tuple[str, ...] = ()

    def steps(self, rows: Tally, size: int, records: Tally) -> int:
        groups = rows.domain.select(self.by)
        rows, records = (each.roll_up((*self.by, self.response)) for each in (rows, records))
        place, known = values_of(rows.domain.axes[-1])
        means = self._means(groups, records, place, known)
        group, cell = self._placed(groups, rows)
        # In whole steps, so that a row's contribution is the same in every table.
        parts = np.rint(STEPS * (place[cell] - means[group])).astype(np.int64) * known[cell]
        sums = [0] * groups.size
        for each, part in zip(group.tolist(), (parts.astype(object) * rows.counts), strict=True):
            sums[each] += int(part)
        return sum(map(abs, sums)) // 2

    def _means(self, groups: Domain, records: Tally, place: Floats, known: Booleans) -> Floats:
        """The mean (groups,) in the records of each group."""
        group, cell = self._placed(groups, records)
        counts = records.counts * known[cell]
        number, total = (
            np.bincount(group, counts * each, groups.size) for each in (1.0, place[cell])
        )
        every = total.sum() / max(number.sum(), 1.0)
        return np.where(number > 0, total / np.maximum(number, 1.0), every)

    def _placed(self, groups: Domain, tally: Tally) -> tuple[Integers, Integers]:
        """The group and the response's cell of each cell of a tally."""
        codes = tally.domain.unpack(tally.cells)
        return groups.pack(codes[:, :-1]), codes[:, -1]


def values_of(axis: Axis) -> tuple[Floats, Booleans]:
    """The value (cells,) of each cell, from 0 to 1, and whether it is not null.

    Raises ``ValueError`` for more than two categories that are not in order.
    """
    known = np.arange(axis.size) < axis.size - axis.nullable
    if in_order(axis):
        return _places(axis), known
    if known.sum() != 2:
        raise ValueError(f"{axis.name} must be a column of numbers or of two categories")
    return np.array([0.0, 1.0, 0.0])[: axis.size], known


def _features(tally: Tally, name: str) -> Floats:
    """The features (cells, features) of a column: 0 or 1 for each category, or a number's place from 0
    to 1 and whether it is null."""
    axis = tally.domain.axes[tally.domain.positions[name]]
    if isinstance(axis, Categories) and not in_order(axis):
        return np.asarray(np.eye(axis.size))
    places = _places(axis)[:, None]
    null = np.arange(axis.size)[:, None] == axis.size - 1
    return np.concatenate([places, null], axis=1, dtype=np.float64) if axis.nullable else places


def _places(axis: Axis) -> Floats:
    """The middle of each cell as a fraction of the range of an axis; 0 for null."""
    if isinstance(axis, Categories):
        middle = np.asarray(axis.categories, dtype=np.float64)
    else:
        edges = np.asarray(axis.edges, dtype=np.float64)
        middle = (edges[:-1] + edges[1:]) / 2
    low, high = float(middle.min()), float(middle.max())
    places = (middle - low) / ((high - low) or 1.0)
    return np.concatenate([places, np.zeros(int(axis.nullable))])


def _codes(tally: Tally) -> Integers:
    """The codes (k, axes) of the occupied cells."""
    return np.stack([tally.codes(i) for i in range(len(tally.domain.axes))], axis=1).astype(
        np.int64
    )
