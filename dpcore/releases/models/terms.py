r"""The terms of a model as tables of public values, and a basis in which they are nearly uncorrelated.

A term, and the response, is a function of the cells of a few columns of the survey.  Its values in all
of these cells are computed once, from the plan alone, and a record's row is looked up: it is the same
to the last bit, whatever the other records are.  A record with a null in one of the columns is left
out.

Terms that are functions of the same columns make a group.  If every cell were equally frequent, a group
would be uncorrelated with the constant, with the groups of some of its columns and within itself; and
no row of it is longer than 1.  So a row x in this basis has |x|^2 <= number of groups, and

    x = z T,        z.beta = x.theta,        beta = T theta        z: the row of the formula's terms

>>> import numpy as np
>>> from dpcore.domain.axes import Categories
>>> sex, old = TermGroup((0,), (1,), np.array([[0.0], [1.0]])), TermGroup((), (0,), np.ones((1, 1)))
>>> says = TermGroup((1,), (0,), np.array([[0.0], [1.0]]))
>>> axes = (Categories("sex", ("F", "M")), Categories("says", ("no", "yes")))
>>> terms = ModelTerms(axes, ("Intercept", "sex[T.M]"), (old, sex), says)
>>> terms.rows(np.array([[0, 0], [1, 0]])).round(6).tolist(), terms.norm_squared
([[1.0, -1.0], [1.0, 1.0]], 2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis

MOST_CELLS = 2**20
"""The most cells of the columns of a group."""

MOST_JOINED = 2**17
"""The most cells of all columns in which two models are compared."""

FEW_VALUES = 16
"""Terms of no more values are not numeric."""

EVEN, DOUBLINGS = 16, 10
"""A term has ``EVEN`` bins of equal width.  Those next to zero are halved again and again, until the
narrowest are 2^-``DOUBLINGS`` of the bounds wide."""

FEWEST_CELLS = 8
"""Coordinates in a part of a column's bounds need this many cells there for each term."""

COLLINEAR = 1e-9
"""A term is a linear combination of others if less than this fraction of it is left after projection."""


@dataclass(frozen=True, eq=False)
class TermGroup:
    """Functions of the same columns of the survey; all public.

    ``attributes``: positions of the columns; ``places``: the positions of these terms in the model;
    ``values``: (cells, k) of each term in every cell of the columns, without null.
    """

    attributes: tuple[int, ...]
    places: tuple[int, ...]
    values: Floats


@dataclass(frozen=True, eq=False)
class ModelTerms:
    """The terms ``names`` of a model over some axes, and its response (a group of one).

    ``scale``: sums use (response - first number) / second number.

    Raises ``ValueError`` if a term is a linear combination of others.
    """

    axes: tuple[Axis, ...]
    names: tuple[str, ...]
    groups: tuple[TermGroup, ...]
    response: TermGroup
    scale: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        _ = self.basis

    @property
    def size(self) -> int:
        """The number of terms, p."""
        return len(self.names)

    @property
    def norm_squared(self) -> int:
        """The largest squared length of a row, up to rounding."""
        return len(self.groups)

    @property
    def constant(self) -> int | None:
        """The position of the constant, if there is one."""
        return next((each.places[0] for each in self.groups if not each.attributes), None)

    @cached_property
    def separate(self) -> Integers | None:
        """If the model has a mean for each of several separate groups of records, the only term that is
        1, and not 0, in each cell (cells,) of the terms' columns; None for any other model."""
        group = self.groups[0]
        indicates = np.all((group.values == 0) | (group.values == 1), axis=1)
        one = np.all(indicates & (group.values.sum(axis=1) == 1))
        return group.values.argmax(axis=1) if one and 1 < self.size == len(group.places) else None

    @cached_property
    def edges(self) -> dict[int, Floats]:
        """By the position of each numeric term in the new basis, the edges of bins of its values.

        If several terms are functions of one column, such as an amount and its square, only the first
        has edges; several functions of the same two or more columns have none.
        """
        found = {}
        for group, table in zip(self.groups, self.basis[1], strict=True):
            values, several = table[:, 0], len(group.places) > 1
            if not _numeric(group):
                continue
            # Nothing but a constant can make up for a shift of several terms.
            if several and (len(group.attributes) > 1 or self.constant is None):
                continue
            zero = values[np.argmin(np.abs(group.values[:, 0]))]
            first, last = float(values.min()), float(values.max())
            near = (last - first) / EVEN * 0.5 ** np.arange(1, DOUBLINGS - math.log2(EVEN) + 1)
            edges = np.r_[np.linspace(first, last, EVEN + 1), zero - near, zero, zero + near]
            found[group.places[0]] = np.unique(edges[(first <= edges) & (edges <= last)])
        return found

    @cached_property
    def tables(self) -> dict[int, tuple[tuple[int, ...], Floats]]:
        """By the position of its first term, the positions (k,) of a group's terms, and their values
        (cells, k) in the new basis."""
        groups = zip(self.groups, self.basis[1], strict=True)
        return {group.places[0]: (group.places, table) for group, table in groups}

    def inside(self, first: int, middle: float, half: float) -> tuple[Floats, Floats]:
        """Coordinates (x - (k,)) (k, k) of the terms x of a group, where its first term is within
        ``half`` of ``middle``.

        Several functions of one column are nearly collinear in a small part of its bounds.  In these
        coordinates they are not, if all cells in that part are equally frequent.
        """
        places, table = self.tables[first]
        if len(places) == 1:
            return np.array([middle]), np.array([[1 / half]])
        rows = table[np.abs(table[:, 0] - middle) <= half]
        if len(rows) >= FEWEST_CELLS * len(places):
            left = rows - rows.mean(axis=0)
            factor = np.asarray(np.linalg.qr(left, mode="r"))
            if np.abs(np.diag(factor)).min() > COLLINEAR * np.linalg.norm(left):
                return rows.mean(axis=0), _no_longer_than_1(left, factor)
        return np.zeros(len(places)), np.eye(len(places))

    def farthest(self, first: int, white: Floats, middle: Floats, local: Floats) -> Floats:
        """The longest whitened row (t, p) of records with a mean in all other terms, among the values of
        a group that are at most 1 long in coordinates (x - ``middle``) ``local`` (``inside``).

        ``white``: (t, p, p), in whose basis terms have about unit second moments, so that the mean of
        all rows is that of the constant.
        """
        places, table = self.tables[first]
        own = list(places)
        back = np.linalg.inv(white)
        mean = back[:, :, self.constant]
        apart = table - (mean[:, None, :] @ back)[:, :, own]
        rows = mean[:, None, :] + apart @ white[:, own, :]
        relative = (table - middle[:, None, own]) @ local[:, own][:, :, own]
        inside = np.sum(relative**2, axis=2) <= 1 + COLLINEAR
        length = np.where(inside, np.sum(rows**2, axis=2), 0.0)
        return np.asarray(rows[np.arange(len(rows)), np.argmax(length, axis=1)])

    @cached_property
    def indicators(self) -> Booleans:
        """Whether each term (p,) is 0 or 1 for every record, and not the constant."""
        found = np.zeros(self.size, dtype=bool)
        for group in self.groups:
            if group.attributes:
                found[list(group.places)] = np.all(
                    (group.values == 0) | (group.values == 1), axis=0
                )
        return found

    @cached_property
    def subsets(self) -> tuple[Floats, Booleans]:
        """Sums of terms (m, p) that are 1 in a subset of the records and 0 in others: the constant, each
        indicator, and the base of exclusive indicators; and which coefficients (m, p) have no solution
        if the response never varies in the subset."""
        found, needed, own = list[Floats](), list[Booleans](), np.eye(self.size)
        if self.constant is not None:
            found.append(own[self.constant])
            needed.append(np.ones(self.size, dtype=bool))
        for group in self.groups:
            places = list(group.places)
            if not self.indicators[places].all():
                continue
            found += [*own[places]]
            needed += [*own[places].astype(bool)]
            exclusive = bool(np.all(group.values.sum(axis=1) <= 1))
            if exclusive and len(group.attributes) == 1 and self.constant is not None:
                base = own[self.constant] - own[places].sum(axis=0)
                found.append(base)
                needed.append(base != 0)
        empty = np.zeros((0, self.size))
        return np.array(found or empty), np.array(needed or empty, dtype=bool)

    @cached_property
    def numeric(self) -> Booleans:
        """Whether each term (p,) has more than ``FEW_VALUES`` values.  Those of the records may then lie
        in a small part of its bounds."""
        found = np.zeros(self.size, dtype=bool)
        for group in self.groups:
            found[list(group.places)] = _numeric(group)
        return found

    @property
    def binary(self) -> bool:
        """Whether the scaled response is -1 or 1."""
        scaled = (self.response.values - self.scale[0]) / self.scale[1]
        return bool(np.all(np.abs(scaled) == 1) and np.ptp(scaled) == 2)

    def of_a_group(self, centred: bool) -> ModelTerms:
        """The model of one separate group, with its mean only; ``centred``: centre the response."""
        one, values = TermGroup((), (0,), np.ones((1, 1))), self.response.values
        ends = float(values.min()), float(values.max())
        scale = ((ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2) if centred else self.scale
        return replace(self, names=("mean",), groups=(one,), scale=scale)

    def term_of(self, codes: Integers) -> Integers:
        """The separate group (n,) of records with codes (n, axes); -1 for records with a null."""
        assert self.separate is not None
        kept = self.kept(codes)
        found = self.separate[np.where(kept, self._at(self.groups[0], codes), 0)]
        return np.where(kept, found, -1)

    @cached_property
    def _sizes(self) -> list[int]:
        """The number of values of each column."""
        return [axis.size - axis.nullable for axis in self.axes]

    def _at(self, group: TermGroup, codes: Integers) -> Integers:
        """The cells (n,) of a group's columns for records with codes (n, axes)."""
        cells = np.zeros(len(codes), dtype=np.int64)
        for i in group.attributes:
            cells = cells * self._sizes[i] + codes[:, i]
        return cells

    def change_to(self, other: ModelTerms) -> Floats | None:
        """The matrix (p, p) that turns coefficients of these terms into those of the other terms of the
        same model; None if the other terms, over the same axes, make another model.

        They are the same model if each term of the other is a sum of these in every cell.
        """
        if other.size != self.size or not self._same_response(other):
            return None
        found = np.zeros((self.size, self.size))
        for group in other.groups:
            sums = self._sums(other, group)
            if sums is None:
                return None
            found[:, group.places] = sums
        # In units of each term, so that those of large amounts do not look like rounding errors.
        ours, theirs = self._largest, other._largest
        change = np.linalg.inv(self.basis[0] @ found * ours[:, None] / theirs)
        rounding = COLLINEAR * np.abs(change).max(axis=1, keepdims=True)
        return np.asarray(np.where(np.abs(change) < rounding, 0.0, change) * ours / theirs[:, None])

    def _sums(self, other: ModelTerms, group: TermGroup) -> Floats | None:
        """The terms of another model's group as sums of these terms: (p, k) in the new basis; None if
        one is no such sum."""
        used = tuple(sorted({a for each in self.groups for a in each.attributes}))
        tables = [*zip(self.groups, self.basis[1], strict=True)]
        near = [each for each in tables if {*each[0].attributes} <= {*group.attributes}]
        # Where a model has a mean for each group, its constant is a sum over all of them.
        for attributes, some in ((group.attributes, near), (used, tables)):
            if not some or not {*group.attributes} <= {*attributes}:
                continue
            if math.prod(self._sizes[a] for a in attributes) > MOST_JOINED and some is tables:
                continue
            codes = cells_of(self._sizes, attributes)
            here = np.column_stack([table[self._at(own, codes)] for own, table in some])
            there = group.values[other._at(group, codes)]
            sums = np.linalg.lstsq(here, there, rcond=None)[0]
            if np.all(np.abs(here @ sums - there) <= COLLINEAR * np.abs(there).max(axis=0)):
                found = np.zeros((self.size, len(group.places)))
                found[[place for own, _ in some for place in own.places]] = sums
                return found
        return None

    @property
    def _largest(self) -> Floats:
        """The largest value (p,) of each term."""
        found = np.zeros(self.size)
        for group in self.groups:
            found[list(group.places)] = np.abs(group.values).max(axis=0)
        return found

    def _same_response(self, other: ModelTerms) -> bool:
        mine, theirs = self.response, other.response
        return mine.attributes == theirs.attributes and np.array_equal(mine.values, theirs.values)

    @cached_property
    def basis(self) -> tuple[Floats, tuple[Floats, ...]]:
        """The matrix T (p, p), and the values (cells, k) of each group in the new basis."""
        found, tables = np.zeros((self.size, self.size)), []
        for group in self.groups:
            below = [g for g in self.groups if {*g.attributes} < {*group.attributes}]
            codes = cells_of(self._sizes, group.attributes)
            others = [g.values[self._at(g, codes)] for g in below]
            before = np.column_stack(others) if others else np.zeros((len(codes), 0))
            slopes = np.linalg.lstsq(before, group.values, rcond=None)[0]
            left = group.values - before @ slopes
            factor = np.asarray(np.linalg.qr(left, mode="r"))
            # The diagonal is what each term adds to those before it.
            size = np.linalg.norm(group.values, axis=0)
            for name, kept, whole in zip(group.places, np.abs(np.diag(factor)), size, strict=False):
                if not kept > COLLINEAR * whole:
                    raise ValueError(
                        f"{self.names[name]} is constant, or a linear combination of other terms; leave"
                        " it out"
                    )
            if len(group.values) < len(group.places):
                raise ValueError(
                    f"{self.names[group.places[-1]]} is a sum of other terms; leave it out"
                )
            # The sensitivity of the moments rests on it.
            inverse = _no_longer_than_1(left, factor)
            tables.append(left @ inverse)
            own = list(group.places)
            found[np.ix_(own, own)] = inverse
            if below:
                rest = [place for each in below for place in each.places]
                found[np.ix_(rest, own)] = -slopes @ inverse
        return found, tuple(tables)

    def kept(self, codes: Integers) -> Booleans:
        """Which records (n,) have a value in every column of the model."""
        used = {a for each in (*self.groups, self.response) for a in each.attributes}
        nulls = [codes[:, a] == self._sizes[a] for a in used if self.axes[a].nullable]
        return np.asarray(~np.any([np.zeros(len(codes), dtype=bool), *nulls], axis=0))

    def rows(self, codes: Integers) -> Floats:
        """The rows (n, p), in the new basis, of records with codes (n, axes) without nulls."""
        found = np.empty((len(codes), self.size))
        for group, table in zip(self.groups, self.basis[1], strict=True):
            found[:, list(group.places)] = table[self._at(group, codes)]
        return found

    def responses(self, codes: Integers) -> Floats:
        """The responses (n,) of records with codes (n, axes) without nulls."""
        middle, half = self.scale
        return np.asarray((self.response.values[self._at(self.response, codes), 0] - middle) / half)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest possible response, scaled."""
        middle, half = self.scale
        values = (self.response.values - middle) / half
        return float(values.min()), float(values.max())

    def rescaled(self, values: Floats, covariances: list[Floats]) -> tuple[Floats, list[Floats]]:
        """Convert coefficients (p,) and covariances (p, p) from the scaled response to its units."""
        middle, half = self.scale
        moved = values * half
        if self.constant is not None:
            moved[self.constant] += middle
        return moved, [each * half**2 for each in covariances]


def cells_of(sizes: Sequence[int], attributes: Sequence[int]) -> Integers:
    """Codes (cells, axes) of all cells of some columns, with 0 in the others, given all ``sizes``."""
    own = [sizes[a] for a in attributes]
    codes = np.zeros((math.prod(own), len(sizes)), dtype=np.int64)
    if own:
        codes[:, list(attributes)] = np.indices(own).reshape(len(own), -1).T
    return codes


def _no_longer_than_1(rows: Floats, factor: Floats) -> Floats:
    """The matrix that makes rows (n, k) with this triangular factor (k, k) uncorrelated, and none longer
    than 1."""
    inverse = np.linalg.inv(factor)
    return np.asarray(inverse / float(np.linalg.norm(rows @ inverse, axis=1).max()))


def _numeric(group: TermGroup) -> bool:
    """Whether a term may lie within a small part of its bounds."""
    return len(np.unique(group.values[:, 0])) > FEW_VALUES
