"""From synthetic codes to records in the survey's own columns, categories and types.

The code of a category becomes the category, the null cell becomes null, and the code of an interval a
number inside it (``dpcore.synthesis.column``).  Numbers of one record keep their ranks and obey rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Categories, in_order
from dpcore.domain.domain import Domain
from dpcore.post.records.compared import EQUAL, LESS, MORE, UNKNOWN, Pair, in_turn
from dpcore.post.records.differences import Difference, drawn_in_turn
from dpcore.post.records.ordered import positions_in_order
from dpcore.post.records.ranks import positions_in_bins
from dpcore.post.records.rules import Rule
from dpcore.releases.counts.cells import masked_categories
from dpcore.synthesis.column import ColumnCells, ColumnDensity, ColumnValues, wide_cells

TRIES = 8
"""Numbers of a record that break an inequality are drawn again this often, all together."""

UNEQUAL = UNKNOWN + 1
"""A relation that only a plan's axis of equality has."""

LARGEST_RELATED = 2**16
"""The most cells of a column whose ranks inside bins are correlated with other columns."""

Applying = tuple[Difference, Booleans]
"""An inequality, and the records (rows,) to which it applies."""


def decode_records(
    domain: Domain,
    codes: Integers,
    densities: Mapping[str, ColumnDensity | ColumnValues],
    generator: np.random.Generator,
    rules: Sequence[Rule] = (),
) -> dict[str, NDArray[Any]]:
    """Columns of records (rows,) from codes (rows, axes); nulls are masked.

    A column with bins that has no density follows a smooth one.

    If codes obey the rules, the numbers obey the rules' differences.  If a record breaks one, all its
    numbers are drawn again; after ``TRIES`` times, each in turn from the numbers still allowed.
    """
    cells = {
        i: ColumnCells.of(axis, codes[:, i], densities.get(axis.name))
        for i, axis in enumerate(domain.axes)
        if in_order(axis)
    }
    positions = {i: generator.random(len(codes)) for i in cells}
    few = [i for i in cells if domain.axes[i].size <= LARGEST_RELATED]
    wide = [wide_cells(domain.axes[i]) for i in few]
    if len(few) > 1 and any(of.any() for of in wide):
        related = positions_in_bins(codes[:, few], wide, generator)
        positions |= {i: related[:, c] for c, i in enumerate(few)}
    applying = [
        (difference, rule.applies(codes.T)) for rule in rules for difference in rule.differences
    ]
    relations = _relations(domain, codes)
    for ordered in _ordered(applying, relations):
        _put_in_order(ordered, applying, codes, cells, positions, generator)
    numbers = {i: of.at(positions[i]) for i, of in cells.items()}
    for pair, free in in_turn(relations):
        _made_equal(numbers, pair, free, relations[pair], cells)
        _made_unequal(numbers, pair, free, relations[pair], cells, generator)
    columns = sorted({c for difference, _ in applying for c in difference.columns})
    for _ in range(TRIES if applying else 0):
        wrong = np.flatnonzero(_broken(numbers, applying))
        # All numbers of a record: one alone might have no allowed value given the others.
        for c in columns:
            numbers[c][wrong] = cells[c].select(wrong).draw(generator)
    wrong = np.flatnonzero(_broken(numbers, applying)) if applying else np.zeros(0, dtype=np.int64)
    if len(wrong):
        rest = {c: cells[c].select(wrong) for c in columns}
        some = [
            # If one number is null, the other may have any value.
            (d, applies[wrong] & ~np.any([rest[c].null for c in d.columns], axis=0))
            for d, applies in applying
        ]
        drawn = drawn_in_turn(
            {c: of.inside for c, of in rest.items()},
            some,
            lambda c, inside: replace(rest[c], inside=inside).draw(generator, null=False),
        )
        for c, values in drawn.items():
            numbers[c][wrong] = np.where(rest[c].null, np.nan, values)
    return {
        axis.name: masked_categories(axis, codes[:, i])
        if isinstance(axis, Categories)
        else cells[i].written(numbers[i])
        for i, axis in enumerate(domain.axes)
    }


def _relations(domain: Domain, codes: Integers) -> dict[Pair, Integers]:
    """The relation (rows,) that each pair of compared columns must have.  A pair is left out if its
    relation is unknown in all records, or one of its columns is not drawn here."""
    found = dict[Pair, Integers]()
    for i, axis in enumerate(domain.axes):
        if isinstance(axis, Categories) and axis.compares and {*axis.compares} <= {*domain.names}:
            one, other = (domain.positions[name] for name in axis.compares)
            relation = codes[:, i] if axis.nullable else np.where(codes[:, i] == 1, EQUAL, UNEQUAL)
            if (relation != UNKNOWN).any():
                found[one, other] = relation
    return found


def _made_equal(
    numbers: Mapping[int, Floats],
    pair: Pair,
    free: Collection[int],
    relation: Integers,
    cells: Mapping[int, ColumnCells],
) -> None:
    """Make two columns' numbers (rows,) equal where they must be, if their cells allow it."""
    one, other = pair
    for source, copy in (pair, (other, one)):
        if copy in free:
            inside = cells[copy].inside
            same = (inside.first <= numbers[source]) & (numbers[source] <= inside.last)
            rows = np.flatnonzero((relation == EQUAL) & same & (numbers[one] != numbers[other]))
            numbers[copy][rows] = numbers[source][rows]


def _made_unequal(
    numbers: Mapping[int, Floats],
    pair: Pair,
    free: Collection[int],
    relation: Integers,
    cells: Mapping[int, ColumnCells],
    generator: np.random.Generator,
) -> None:
    """Draw the numbers of free columns again, up to ``TRIES`` times, where their relation is wrong."""
    one, other = (numbers[column] for column in pair)
    for _ in range(TRIES):
        wrong = (relation == UNEQUAL) & (one == other)
        wrong |= ((relation == LESS) & (one >= other)) | ((relation == MORE) & (one <= other))
        rows = np.flatnonzero(wrong)
        for column in free:
            numbers[column][rows] = cells[column].select(rows).draw(generator)


def _ordered(applying: Sequence[Applying], related: Collection[Pair]) -> list[Pair]:
    """Pairs of columns that inequalities compare, each column only in its first pair."""
    found: list[Pair] = []
    taken = set[int](chain.from_iterable(related))
    for difference, _ in applying:
        if len(pair := difference.columns) == 2 and taken.isdisjoint(pair):
            found.append((pair[0], pair[1]))
            taken.update(pair)
    return found


def _put_in_order(
    columns: tuple[int, int],
    applying: Sequence[Applying],
    codes: Integers,
    cells: Mapping[int, ColumnCells],
    positions: dict[int, Floats],
    generator: np.random.Generator,
) -> None:
    """Move two columns' positions so that their numbers are in order and follow their densities.

    Nothing is moved if a column with wide cells has no density.  If inequalities apply to different
    records, only those that apply to most records count; the caller enforces the others.
    """
    if any(cells[c].density is None and wide_cells(cells[c].axis).any() for c in columns):
        return
    its = [(d, applies) for d, applies in applying if set(d.columns) == set(columns)]
    ordered = max((applies for _, applies in its), key=np.count_nonzero)
    said = [difference for difference, applies in its if np.array_equal(applies, ordered)]
    both = np.flatnonzero(~(cells[columns[0]].null | cells[columns[1]].null))

    def number(side: int, of: Integers, at: Floats) -> Floats:
        one = cells[columns[side]]
        return ColumnCells.of(one.axis, of, one.density).at(at)

    def in_order(one: Floats, other: Floats) -> Booleans:
        numbers = dict(zip(columns, (one, other), strict=True))
        return np.asarray(~np.any([each.broken(numbers) for each in said], axis=0))

    found = positions_in_order(
        codes[both][:, list(columns)],
        (cells[columns[0]].axis.size, cells[columns[1]].axis.size),
        number,
        in_order,
        ordered[both],
        generator,
        np.stack([positions[c][both] for c in columns], axis=1),
    )
    for side, column in enumerate(columns):
        positions[column] = positions[column].copy()
        positions[column][both] = found[:, side]


def _broken(numbers: Mapping[int, Floats], applying: Sequence[Applying]) -> Booleans:
    """Whether (rows,) the numbers of each record break a difference that applies to it."""
    broken = [applies & difference.broken(numbers) for difference, applies in applying]
    return np.asarray(np.any(broken, axis=0))
