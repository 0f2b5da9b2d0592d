"""Tallies the survey: a GROUP BY counts the records in every occupied cell.

Releases share a reading: the axes of several releases are packed into one cell, the survey is read once,
and the tally of each release is rolled up from the occupied cells:

    sex x age, sex x region, age    --packed-->  sex x age x region  --roll_up-->  one tally each

Packing saves time if few packed cells are occupied.  The sizes of the axes and the plan's number of
rows, which are public, bound their number; domains that would exceed ``LARGEST_PACK`` are counted in
another reading.  The engine computes the cell of a record (``cells``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Axis, read_columns
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.words import in_words
from dpcore.errors import DataError
from dpcore.releases.models.design import STEPS, SurveyDesign
from schemas.plan.linked import Linked
from schemas.plan.series import Periods
from schemas.survey.columns import Invalid, ReadColumn
from schemas.survey.unit import UnitColumn, Weights
from tasks.survey.bounding import (
    add_weight_steps,
    keep_identified,
    keep_periods,
    keep_records,
)
from tasks.survey.cells import count_cells, keep_valid, within_found
from tasks.survey.linked import unit_records, wide_records
from tasks.survey.private_file import call_guarded
from tasks.survey.reading import Survey, Unread, open_survey

LARGEST_PACK = 2**20
"""Domains are packed together if at most this many cells can be occupied."""

LARGEST_TOTAL = 2.0**61
"""The most records, or steps of weight, of a survey: such sums are exact in 64 bits.  A trillion records
of ``MOST_STEPS`` each stay below it."""

UNREAD = "the survey table does not fit the plan: validate it first"

Axes = tuple[Axis, ...]


@dataclass(frozen=True)
class Counting:
    """How the records of a survey are counted; public.

    With ``unit``, only the kept records of each unit count; with ``periods``, only records in its first
    periods. With ``weights``, steps of weight are counted instead of records. With ``counts``, this
    column gives the number of records of each row. With ``linked``, the wide records of units are
    counted; with ``design``, the units of a model.  ``invalid``: the rule for values that are not valid;
    under ``drop``, for values in any of ``columns``.
    """

    rows: int | None = None
    adjacency: Adjacency = REPLACE_ONE
    unit: UnitColumn | None = None
    weights: Weights | None = None
    columns: Mapping[str, ReadColumn] = field(default_factory=dict)
    invalid: Invalid = "refuse"
    periods: Periods | None = None
    counts: str | None = None
    linked: Linked | None = None
    design: SurveyDesign | None = None


def tallies(survey: Survey, domains: Sequence[Domain], how: Counting = Counting()) -> list[Tally]:
    """The private tally of every domain, in their order, from few readings.

    ``survey`` is private, all other arguments are public. Raises ``DataError``, without any value, if
    the rule for invalid values is ``refuse`` and a record has no cell, if the number of records is
    public and the counts do not add up to it, or if their sum exceeds ``LARGEST_TOTAL``.

    Where the number of records is private, each count is cut at ``adjacency.most_rows(rows)``.  Tallies
    of neighbours differ in each cell by the records removed from it and added to it.  Cutting enlarges
    no difference and reverses none, so they remain tallies of neighbours.
    """
    found: dict[Domain, Tally] = {}
    rows, public_rows = how.rows, how.rows is None or how.adjacency.public_rows
    with open_survey(survey) as (table, unread, unfit):
        if unfit:
            raise DataError(UNREAD)
        table, unread, how = _prepared(table, unread, domains, how)
        for axes in pack(domains, rows):
            cells, counts = call_guarded(
                partial(_count, table, unread, axes, how),
                DataError,
                "the survey table could not be tallied",
            )
            if rows is not None and public_rows and counts.sum() != rows:
                raise DataError(
                    f"rows: the survey table does not have the {rows} records that the plan states;"
                    " correct `rows`, or the table"
                )
            found |= _rolled_up(axes, cells, counts, domains)
    if rows is None or public_rows:
        return [found[domain] for domain in domains]
    most = how.adjacency.most_rows(rows)
    cut = {domain: replace(t, counts=np.minimum(t.counts, most)) for domain, t in found.items()}
    return [cut[domain] for domain in domains]


def _prepared(
    table: Any, unread: Unread, domains: Sequence[Domain], how: Counting
) -> tuple[Any, Unread, Counting]:
    """The table without dropped records, or its wide records, and how to count these."""
    table = within_found(table, how.columns)
    # First, so that a dropped record does not displace a kept record of its unit.
    if how.invalid == "drop":
        valid = partial(keep_valid, table, how.columns)
        table = call_guarded(valid, DataError, "the survey table could not be checked")
    if how.unit:
        table = keep_identified(table, how.unit)
    if how.linked and how.unit:
        wide = partial(wide_records, table, how.unit, how.linked)
        table, unread = _wide(unread, wide, how.invalid)
        how = replace(how, unit=None)
    if how.design:
        wide = partial(unit_records, table, domains[0], how.design, how.unit, how.weights)
        table, unread = _wide(unread, wide, how.invalid)
        how = replace(how, unit=None, weights=None)
    return table, unread, how


def _wide(unread: Unread, wide: Callable[[], Any], invalid: Invalid) -> tuple[Any, Unread]:
    """The wide records, in which no value has the wrong type."""
    if invalid == "refuse" and any(unread.values()):
        raise DataError(UNREAD)
    table = call_guarded(wide, DataError, "the survey table could not be linked")
    return table, {name: {} for name in table.columns}


def pack(domains: Sequence[Domain], rows: int | None) -> list[Axes]:
    """The axes to count together in each reading of the survey; public like the arguments.

    Every domain lies within one pack.  A pack can have at most ``LARGEST_PACK`` occupied cells, unless
    its largest domain alone can have more.
    """
    packs: list[Axes] = []
    # The largest first, because it often contains smaller domains.
    for domain in sorted(set(domains), key=lambda domain: -domain.size):
        for i, axes in enumerate(packs):
            joined = axes + tuple(axis for axis in domain.axes if axis not in axes)
            size = math.prod(axis.size for axis in joined)
            occupied = size if rows is None else min(size, rows)
            if joined == axes or occupied <= LARGEST_PACK:
                packs[i] = joined
                break
        else:
            packs.append(domain.axes)
    return packs


def _count(table: Any, unread: Unread, axes: Axes, how: Counting) -> tuple[Integers, Integers]:
    """Cells, ascending, and positive counts of records, or of steps of weight."""
    names = list(dict.fromkeys(name for axis in axes for name in read_columns(axis)))
    extras = (how.unit, how.weights)
    read = [*names, *(extra.column for extra in extras if extra), *filter(None, [how.counts])]
    if how.invalid == "refuse" and any(unread[name] for name in read):
        raise DataError(UNREAD)
    if how.unit and how.periods:
        table = keep_periods(table, how.unit, how.periods, how.invalid)
    if how.unit:
        table = keep_records(table, how.unit)
    if how.weights:
        table = add_weight_steps(table, how.weights)
    counted = STEPS if how.weights else how.counts
    found = count_cells(table, axes, counted, how.invalid).to_pyarrow()
    *words, records = found.columns
    if any(word.null_count for word in words):
        raise DataError(
            f"a record has no cell in {' x '.join(names)}: validate the survey table first"
        )
    cells = in_words(np.stack([word.to_numpy() for word in words]))
    records = records.to_numpy()
    require_countable(records)
    occupied = records > 0
    return np.asarray(cells[occupied], dtype=np.int64), np.asarray(
        records[occupied], dtype=np.int64
    )


def require_countable(counts: Integers) -> None:
    """Raise ``DataError`` if counts add up to more than ``LARGEST_TOTAL``."""
    if counts.sum(dtype=np.float64) > LARGEST_TOTAL:  # a sum of whole numbers would wrap around
        raise DataError("the survey table has more than a trillion records: they cannot be counted")


def _rolled_up(
    axes: Axes, cells: Integers, counts: Integers, domains: Sequence[Domain]
) -> dict[Domain, Tally]:
    """The tallies of the domains that lie within a pack."""
    # By position: a column may be in a pack twice, with different axes.
    positions = {axis: str(i) for i, axis in enumerate(axes)}
    numbered = Domain(tuple(replace(axis, name=positions[axis]) for axis in axes))
    packed = Tally(numbered, cells, counts)
    return {
        domain: replace(packed.roll_up(tuple(positions[a] for a in domain.axes)), domain=domain)
        for domain in domains
        if positions.keys() >= set(domain.axes)
    }
