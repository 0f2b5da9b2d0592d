"""Records in which one number is less than, equal to or more than another as often as was measured.

Two columns of numbers, such as the days until a relapse and until death, may be equal in half of the
records, and never in reverse order.  A table of their groups does not show this: where both have the
same group, records would be equal by chance only, and half of them in reverse order.  A noisy table of
three cells shows it with little noise.

    noisy counts of less, equal, more    -->  how many records must change their relation
    some of these records, at random     -->  other cells, inside the groups that they have

Records keep their groups, so tables of groups stay as they are.  A record whose groups fix the relation
does not change, and no pair changes unless its counts differ significantly from the records'.  A column
that was changed for one pair is kept for the next one; pairs that would close a circle are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.axes import Axis, Categories
from dpcore.domain.cell_values import CellNumbers
from dpcore.domain.domain import Domain
from dpcore.post.records.cells_in_order import drawn_between
from dpcore.post.tables.margins import Margin

LESS, EQUAL, MORE, UNKNOWN = range(4)
"""The codes of a relation: of the first number to the other."""

SURELY = 2.0
"""Relations change if a noisy count differs from the records' by this many standard errors."""

NEVER = 2.0
"""A noisy count of fewer standard errors is taken as zero: most rare relations are impossible."""

FITTED = 20
"""How often rows and columns of a table are scaled."""

LEAST = 1e-9
"""The smallest divisor."""

Pair = tuple[int, int]
"""The positions of two columns."""


class Comparison(NamedTuple):
    """What was measured of two columns.

    ``place``: the axis of their relation; ``pair``: the columns; ``counts`` (3,): the noisy count of
    records with each relation.  Except for noise, they add up to the count of records with a number in
    both columns.  ``error``: their standard error.
    """

    place: int
    pair: Pair
    counts: Floats
    error: float


def compared(domain: Domain) -> tuple[tuple[int, Pair], ...]:
    """The axes of relations, each with the positions of the two columns that it compares."""
    return tuple(
        (place, (domain.positions[axis.compares[0]], domain.positions[axis.compares[1]]))
        for place, axis in enumerate(domain.axes)
        if isinstance(axis, Categories) and axis.compares and axis.nullable
    )


def with_few(margin: Margin, axes: Sequence[Axis], each: Comparison) -> Margin:
    """The table of a pair, with fewer records in cells whose only relation is measured to be rare.

    If the cells of one relation have significantly more records than were measured, they keep the
    measured number.  The other records go to other cells, so that the tables of both columns stay about
    the same.
    """
    sizes = [axis.size - axis.nullable for axis in axes]
    one, other = (CellNumbers.of(axis, np.arange(n)) for axis, n in zip(axes, sizes, strict=True))
    table = margin.table.copy()
    inside = table[: sizes[0], : sizes[1]]
    less = one.last[:, None] < other.first[None, :]
    more = one.first[:, None] > other.last[None, :]
    rows, columns = inside.sum(axis=1), inside.sum(axis=0)
    counts = np.where(each.counts < NEVER * each.error, 0.0, each.counts)
    found = inside
    for relation, cells in ((LESS, less), (MORE, more)):
        held = float(inside[cells].sum())
        if held - counts[relation] > NEVER * each.error:
            found = np.where(cells, found * counts[relation] / held, found)
    if found is not inside:
        # Enough rounds for a small table; where no cell is left, totals cannot stay.
        for _ in range(FITTED):
            found = found * (rows / np.maximum(found.sum(axis=1), LEAST))[:, None]
            found = found * (columns / np.maximum(found.sum(axis=0), LEAST))
        table[: sizes[0], : sizes[1]] = found
    return margin._replace(table=table)


@dataclass(frozen=True)
class _Side:
    """One column of a pair: its records' cells, and the cells to which they may move.

    ``of``: the numbers in each cell; ``cells`` (rows,): each record's cell; ``first``, ``last`` (rows,):
    the ends of the cells that it may move to.
    """

    of: CellNumbers
    cells: Integers
    first: Integers
    last: Integers

    @classmethod
    def at(cls, axis: Axis, cells: Integers, groups: tuple[Integers, Integers] | None) -> _Side:
        """``groups``: the group of each record, and of each cell; None if no record may move."""
        values = axis.size - axis.nullable
        of = CellNumbers.of(axis, np.arange(values))
        if groups is None:
            return cls(of, cells, cells, cells)
        of_records, of_cells = groups
        first = np.searchsorted(of_cells[:values], of_records, side="left")
        last = np.searchsorted(of_cells[:values], of_records, side="right") - 1
        return cls(of, cells, first, last)

    @property
    def least(self) -> Floats:
        """The smallest number that each record may have."""
        return self.of.first[self.first]

    @property
    def most(self) -> Floats:
        return self.of.last[self.last]

    def select(self, rows: Integers) -> _Side:
        return _Side(self.of, self.cells[rows], self.first[rows], self.last[rows])

    def fixed(self) -> _Side:
        """The side whose records may not move."""
        return _Side(self.of, self.cells, self.cells, self.cells)

    def moved(self, relation: int, other: _Side, generator: np.random.Generator) -> Integers:
        """Each record's cell.

        A cell is drawn again if none of its numbers can have this relation to a number that the record
        may have in the other column.
        """
        first, last = self.first, self.last
        if relation != LESS:
            first = np.maximum(first, np.searchsorted(self.of.last, other.least, _side(relation)))
        if relation != MORE:
            beyond = np.searchsorted(self.of.first, other.most, _side(relation, upper=True))
            last = np.minimum(last, beyond - 1)
        # Cells of a coarse step may leave gaps: then no cell is right.
        wrong = np.flatnonzero(((self.cells < first) | (self.cells > last)) & (first <= last))
        found = self.cells.copy()
        found[wrong] = drawn_between(self.cells, first[wrong], last[wrong], generator)
        return found


def _side(relation: int, *, upper: bool = False) -> Literal["left", "right"]:
    """``searchsorted``'s ``side``: a cell that ends at the number counts only if both may be equal."""
    return "right" if (relation == EQUAL) == upper else "left"


def may_be(relation: int, one: _Side, other: _Side) -> Booleans:
    """Whether (rows,) some numbers of the records' sides have the relation."""
    if relation == LESS:
        return np.asarray(one.least < other.most)
    if relation == MORE:
        return np.asarray(one.most > other.least)
    return np.asarray((one.least <= other.most) & (other.least <= one.most))


def follow_comparisons(
    domain: Domain,
    codes: Integers,
    groups: Mapping[int, tuple[Integers, Integers]],
    comparisons: Sequence[Comparison],
    generator: np.random.Generator,
) -> Integers:
    """The records (rows, k) with cells changed, so that relations are as frequent as measured.

    ``groups``: for each column that may change, the group of each record (rows,) and of each cell
    (size,).  The axis of a comparison gets the relation that each record's numbers must have, and is
    unknown where that does not matter.
    """
    found = codes.copy()
    for each in comparisons:
        found[:, each.place] = UNKNOWN
    surprising = [
        (surprise, each)
        for each in comparisons
        if (surprise := _surprise(each, domain, found, generator)) > SURELY
    ]
    surprising.sort(key=lambda pair: -pair[0])
    of_pair = {each.pair: each for _, each in surprising}
    for pair, free in in_turn(of_pair):
        may_change = {place: groups[place] for place in free if place in groups}
        if may_change:
            _follow(of_pair[pair], domain, found, may_change, generator)
    return found


def in_turn(pairs: Collection[Pair]) -> Iterator[tuple[Pair, tuple[int, ...]]]:
    """Yield pairs, except those that close a circle; each with its columns that no earlier pair has.

    >>> list(in_turn([(0, 1), (2, 3), (1, 2), (0, 3)]))
    [((0, 1), (0, 1)), ((1, 2), (2,)), ((2, 3), (3,))]
    """
    kept, tree = list[Pair](), dict[int, int]()
    for pair in pairs:  # Kruskal's method: a pair inside one tree closes a circle
        one, other = (tree.get(place, place) for place in pair)
        if one != other:
            kept.append(pair)
            joined = {place for place, root in tree.items() if root == other} | {other, *pair}
            tree |= dict.fromkeys(joined, one)
    taken = set[int]()
    while kept:
        pair = next((each for each in kept if not taken.isdisjoint(each)), kept[0])
        kept.remove(pair)
        yield pair, tuple(place for place in pair if place not in taken)
        taken.update(pair)


def _surprise(
    each: Comparison, domain: Domain, codes: Integers, generator: np.random.Generator
) -> float:
    """How many standard errors the counts differ from the records'."""
    _, relation = _drawn_relations(each.pair, domain, codes, generator)
    wanted = _wanted(each, len(relation))
    return float(np.abs(wanted - np.bincount(relation, minlength=3)).max() / each.error)


def _wanted(each: Comparison, known: int) -> Floats:
    """The counts (3,), scaled to the number of records that have both numbers."""
    counts = np.where(each.counts < NEVER * each.error, 0.0, each.counts)
    return np.asarray(counts * known / max(counts.sum(), 1.0))


def _drawn_relations(
    pair: Pair, domain: Domain, codes: Integers, generator: np.random.Generator
) -> tuple[Integers, Integers]:
    """The rows (k,) with both numbers, and the relation of numbers drawn from their cells."""
    axes = [domain.axes[place] for place in pair]
    known = np.all(
        [codes[:, p] < a.size - a.nullable for p, a in zip(pair, axes, strict=True)], axis=0
    )
    rows = np.flatnonzero(known)
    one, other = (
        CellNumbers.of(axis, codes[rows, place]).at(generator.random(len(rows)))
        for place, axis in zip(pair, axes, strict=True)
    )
    return rows, 1 + np.sign(one - other).astype(np.int64)


def _follow(
    each: Comparison,
    domain: Domain,
    codes: Integers,
    groups: Mapping[int, tuple[Integers, Integers]],
    generator: np.random.Generator,
) -> None:
    """Change cells and relations of ``codes`` for one pair."""
    rows, relation = _drawn_relations(each.pair, domain, codes, generator)
    one, other = (
        _Side.at(
            domain.axes[place],
            codes[rows, place],
            (groups[place][0][rows], groups[place][1]) if place in groups else None,
        )
        for place in each.pair
    )
    wanted = _wanted(each, len(rows)) - np.bincount(relation, minlength=3)
    more, fewer = np.maximum(wanted, 0), np.maximum(-wanted, 0)
    for target in (EQUAL, LESS, MORE):
        possible = may_be(target, one, other)
        for source in (LESS, EQUAL, MORE):
            number = round(float(fewer[source] * more[target] / max(more.sum(), 1.0)))
            some = np.flatnonzero((relation == source) & possible)
            chosen = generator.permutation(some)[:number]
            relation[chosen] = target
    for target in (LESS, EQUAL, MORE):
        some = np.flatnonzero(relation == target)
        start = one.select(some).moved(target, other.select(some), generator)
        found = _Side(one.of, start, one.first[some], one.last[some]).fixed()
        again = other.select(some).moved(_opposite(target), found, generator)
        codes[rows[some], each.pair[0]], codes[rows[some], each.pair[1]] = start, again
    codes[rows, each.place] = relation


def _opposite(relation: int) -> int:
    """The relation of the second number to the first."""
    return {LESS: MORE, MORE: LESS}.get(relation, relation)
