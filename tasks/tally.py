"""Tally the survey: one GROUP BY that counts the records in every occupied cell.

Releases over the same columns share it.  The axes of all of them are packed into one 64-bit cell,
the survey is read once, and the tally of each release is rolled up from the occupied cells:

    sex x age, sex x region, age    --packed-->  sex x age x region  --roll_up-->  one tally each

Packing pays while the packed cells are few beside the records.  How many can be occupied is told by
public numbers alone, the sizes of the axes and the rows of the plan; what would be too many is
counted in a reading of its own.  The cell of a record is computed by the engine (``tasks.cells``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpcore.adjacency import MARGIN, REPLACE_ONE, Adjacency
from dpcore.domain import LARGEST_DOMAIN, Axis, Domain, Integers, Tally
from dpcore.errors import DataError
from schemas.unit import UnitColumn, Weights
from tasks.bounding import STEPS, bounded, weighed
from tasks.cells import count_cells
from tasks.reading import Survey, reading
from tasks.survey import guarded

LARGEST_PACK = 2**20
"""Domains are packed together while they can have this many occupied cells at most."""

Axes = tuple[Axis, ...]


def tallies(
    survey: Survey,
    domains: Sequence[Domain],
    rows: int | None = None,
    adjacency: Adjacency = REPLACE_ONE,
    unit: UnitColumn | None = None,
    weights: Weights | None = None,
) -> list[Tally]:
    """The tally of every domain, in their order, from as few readings as pay: private.

    ``survey`` is private, all else is public; of each ``unit`` some records are kept, and the steps
    of ``weights`` are counted instead of records.  Raises ``DataError`` if a record has no cell, or
    the counts do not add up to ``rows``; where neighbours differ in these, if they are far more.  The
    message holds no value.
    """
    found: dict[Domain, Tally] = {}
    with reading(survey) as (table, unread):
        for axes in pack(domains, rows):
            cells, counts = guarded(
                partial(_count, table, unread, axes, unit, weights),
                DataError,
                "the survey table could not be tallied",
            )
            if rows is not None:
                _require_total(int(counts.sum()), rows, adjacency)
            found |= _rolled_up(axes, cells, counts, domains)
    return [found[domain] for domain in domains]


def pack(domains: Sequence[Domain], rows: int | None) -> list[Axes]:
    """The axes to count together in each reading of the survey; public, as its arguments are.

    Every domain lies within one pack.  A pack of several can have ``LARGEST_PACK`` occupied cells at
    most, beyond those that its largest domain has anyhow.
    """
    packs: list[Axes] = []
    for domain in sorted(set(domains), key=lambda domain: -domain.size):
        for i, axes in enumerate(packs):
            joined = axes + tuple(axis for axis in domain.axes if axis not in axes)
            size = math.prod(axis.size for axis in joined)
            occupied = size if rows is None else min(size, rows)
            if joined == axes or (size <= LARGEST_DOMAIN and occupied <= LARGEST_PACK):
                packs[i] = joined
                break
        else:
            packs.append(domain.axes)
    return packs


def _count(
    table: Any,
    unread: Mapping[str, int],
    axes: Axes,
    unit: UnitColumn | None,
    weights: Weights | None,
) -> tuple[Integers, Integers]:
    """Cell ids, ascending, and positive counts of records, or of steps of weight."""
    names = list(dict.fromkeys(axis.name for axis in axes))
    read = [*names, *(extra.column for extra in (unit, weights) if extra)]
    if any(unread[name] for name in read):
        raise DataError("values of the wrong type were found: validate the survey table first")
    if unit:
        table = bounded(table, unit)
    if weights:
        table = weighed(table, weights)
    found = count_cells(table, axes, STEPS if weights else None).to_pyarrow()
    if found["cell"].null_count:
        raise DataError(
            f"a record has no cell in {' x '.join(names)}: validate the survey table first"
        )
    cells, counts = (found[name].to_numpy() for name in ("cell", "records"))
    occupied = counts > 0
    return np.asarray(cells[occupied], dtype=np.int64), np.asarray(counts[occupied], dtype=np.int64)


def _require_total(found: int, rows: int, adjacency: Adjacency) -> None:
    if adjacency.public_rows and found != rows:
        raise DataError("the survey table does not have the number of records that the plan states")
    if found > adjacency.most_rows(rows):
        raise DataError(
            f"the survey table has more than {MARGIN} times the `rows` that the plan guesses: state a"
            " number of the right size"
        )


def _rolled_up(
    axes: Axes, cells: Integers, counts: Integers, domains: Sequence[Domain]
) -> dict[Domain, Tally]:
    """The tallies of the domains that lie within a pack."""
    # By position: a column may be in a pack twice, by different axes.
    positions = {axis: str(i) for i, axis in enumerate(axes)}
    numbered = Domain(tuple(replace(axis, name=positions[axis]) for axis in axes))
    packed = Tally(numbered, cells, counts)
    return {
        domain: replace(packed.roll_up(tuple(positions[a] for a in domain.axes)), domain=domain)
        for domain in domains
        if positions.keys() >= set(domain.axes)
    }
