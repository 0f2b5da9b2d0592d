"""Neighbouring tables that are likely to be the worst for a release.

A pair is two made-up tables with the same rows except for one record.  The worst pair depends on the
release, and for a faulty release it is not the one its author expected, so several are tried:

    moves   which record is replaced by which          others   what the other records are
    every column from one end to the other             all like the first of the two
    every column by one step                           half like the first, half like the second
    one column only (a label flips at one point)       all in the middle
    numbers by 1/(m+1) of their range                  spread over all cells

If neighbours differ in the number of records, a unit with as many records as allowed is added at either
end of each move: "the last added" where the move ends, "the first added" where it starts.  If a unit is
replaced, all its records move together.  "In the middle" means the cell halfway through the domain.

The opposite corners are the farthest records for margins and densities.  If all records are at one
point, a label that flips there is the worst for a kernel machine, whose margins are then all active.  At
1/(m+1) the Fejer kernel of degree m has a zero, the worst for a K-norm release of Fourier coefficients.
Depending on the other records, the move empties or fills a cell, or the cell stays far above any
threshold.

>>> from dpcore.domain.axes import Categories
>>> from dpcore.domain.domain import Domain
>>> domain = Domain((Categories("sex", ("F", "M")), Categories("owns", ("yes", "no"))))
>>> for pair in neighbouring_pairs(domain, rows=9)[:3]: print(pair.description)
all columns end to end; others like the first
all columns end to end; others half like either
all columns end to end; others in the middle
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import WorstTable

DEGREES = (1, 2, 4, 8)
"""The degrees m for which numbers are moved by 1/(m+1) of their range."""

SPREAD = 64
"""The most cells that are occupied if records are spread out."""

_FEW_AXES, _FEW_COLUMNS = 4, 3


@dataclass(frozen=True, eq=False)
class Pair:
    """Two made-up neighbouring tables."""

    description: str
    near: Tally
    far: Tally


def neighbouring_pairs(
    domain: Domain,
    rows: int,
    adjacency: Adjacency = REPLACE_ONE,
    worst: Iterable[WorstTable] = (),
) -> list[Pair]:
    """Pairs of tables of at most ``rows`` records that differ in one unit, the likely worst first.

    ``worst``: tables that the release itself proposes (``Release.worst_tables``), placed first.
    If the domain has one cell and the rows are public there is only one table, which is its own
    neighbour.  Raises ``ValueError`` if there is no record to replace.
    """
    if rows < 1:
        raise ValueError(f"rows must be positive, not {rows}: there is no record to replace")
    if domain.size < 2 and adjacency.public_rows:
        only = table(domain, [(0, rows)])
        return [Pair("the only possible table", only, only)]
    pairs: list[Pair] = []
    seen: set[tuple[bytes, ...]] = set()
    unit = min(adjacency.most, rows)
    tried = [(label, first, second, [("", [*o.items()])]) for label, o, first, second in worst]
    for move, first, second in _moves(domain):
        company = _others(domain, first, second, rows - unit)
        tried.append((move, first, second, [(f"; others {label}", o) for label, o in company]))
    for move, first, second, companies in tried:
        for change, *sides in _changes(adjacency, first, second):
            if sides[0] == sides[1]:
                continue
            for label, others in companies:
                tables = tuple(
                    table(domain, [*others, *((cell, unit) for cell in side)]) for side in sides
                )
                # Different moves may lead to the same tables, above all in a small domain.
                key = tuple(t.cells.tobytes() + t.counts.tobytes() for t in tables)
                if key not in seen:
                    seen.add(key)
                    pairs.append(Pair(f"{move}{change}{label}", *tables))
    return pairs


def survey_pairs(
    domains: Sequence[Domain],
    rows: int | Sequence[int],
    adjacency: Adjacency | Sequence[Adjacency] = REPLACE_ONE,
) -> list[tuple[Pair, ...]]:
    """Pairs of surveys, each coded in several domains that may share columns.

    One unit moves from the first value of some columns to the last, or is added with the last value.
    The columns are all, one, or all but one.  Records are the same in all codings.  Because weights may
    make records count more often in some domains, each domain has its own ``rows`` and ``adjacency``.
    Each entry holds one pair per domain.
    """
    counted = [rows] * len(domains) if isinstance(rows, int) else rows
    neighbours = [adjacency] * len(domains) if isinstance(adjacency, Adjacency) else adjacency
    names = list(dict.fromkeys(name for domain in domains for name in domain.names))
    moves = [("all columns", set(names))]
    if len(names) > 1:
        moves += [(name, {name}) for name in names[:_FEW_COLUMNS]]
    if len(names) > 2:
        moves += [(f"all but {name}", set(names) - {name}) for name in names[:_FEW_COLUMNS]]
    result = []
    for label, moved in moves:
        for position, others in enumerate(("like the first", "half like either")):
            entry = []
            for domain, count, own in zip(domains, counted, neighbours, strict=True):
                codes = [
                    end if axis.name in moved else 0
                    for axis, end in zip(domain.axes, last_cell(domain), strict=True)
                ]
                first, second, unit = 0, _cell(domain, codes), min(own.most, count)
                _, rest = list(_others(domain, first, second, count - unit))[position]
                change, *sides = next(_changes(own, first, second))
                near, far = (
                    table(domain, [*rest, *((cell, unit) for cell in side)]) for side in sides
                )
                entry.append(Pair(f"{label} end to end{change}; others {others}", near, far))
            result.append(tuple(entry))
    return result


def _changes(
    adjacency: Adjacency, first: int, second: int
) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """The words for a change, and the unit's cells in each neighbour, empty where it is absent."""
    if adjacency.relation == "replace-one":
        yield "", (first,), (second,)
    if not adjacency.public_rows:
        yield ", the last added", (), (second,)
        yield ", the first added", (), (first,)


def _moves(domain: Domain) -> Iterator[tuple[str, int, int]]:
    """The label of a move, and the cell of the record before and after it."""
    start, ends = [0] * len(domain.axes), last_cell(domain)
    yield "all columns end to end", _cell(domain, start), _cell(domain, ends)
    middle = [axis.size // 2 for axis in domain.axes]
    last = len(domain.axes) - 1
    for axis in [last, *range(min(last, _FEW_AXES))]:
        low, high = middle.copy(), middle.copy()
        low[axis], high[axis] = start[axis], ends[axis]
        name = domain.axes[axis].name
        yield f"{name} end to end", _cell(domain, low), _cell(domain, high)
    grids = [i for i, axis in enumerate(domain.axes) if isinstance(axis, Grid)]
    for degree in DEGREES:
        codes = start.copy()
        for i in grids:
            codes[i] = min(round(domain.axes[i].size / (degree + 1)), domain.axes[i].size - 1)
        yield f"numbers by 1/{degree + 1} of their range", 0, _cell(domain, codes)
    for i, axis_of in enumerate(domain.axes):
        if isinstance(axis_of, Grid) and axis_of.points:
            codes = start.copy()
            codes[i] = axis_of.cells
            yield f"{axis_of.name} to a point mass", 0, _cell(domain, codes)
    step = [min(1, axis.size - 1) for axis in domain.axes]
    yield "all columns by one step", 0, _cell(domain, step)


def last_cell(domain: Domain) -> list[int]:
    """The last code of each axis that is a value: neither null nor a point mass next to a grid."""
    return [
        axis.cells - 1 if isinstance(axis, Grid) else max(0, axis.size - 1 - axis.nullable)
        for axis in domain.axes
    ]


def _others(
    domain: Domain, first: int, second: int, count: int
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """The other records, as lists of (cell, count)."""
    yield "like the first", [(first, count)]
    yield "half like either", [(first, count - count // 2), (second, count // 2)]
    yield "in the middle", [(domain.size // 2, count)]
    cells = min(SPREAD, domain.size, max(count, 1))
    shares = [count // cells + (i < count % cells) for i in range(cells)]
    yield "spread out", [(i * domain.size // cells, share) for i, share in enumerate(shares)]


def _cell(domain: Domain, codes: Sequence[int]) -> int:
    return domain.numbers(domain.pack(np.array([codes], dtype=np.int64)))[0]


def table(domain: Domain, counted: Iterable[tuple[int, int]]) -> Tally:
    """The tally of (cell, count) pairs; a cell, given by its number, may occur twice."""
    totals: dict[int, int] = {}
    for cell, count in counted:
        if count:
            totals[cell] = totals.get(cell, 0) + count
    counts = np.array([totals[cell] for cell in sorted(totals)], dtype=np.int64)
    return Tally(domain, domain.at(sorted(totals)), counts)
