"""Tallies the texts of an open column, in one record of each unit.

The counted record of a unit depends on the unit's records alone, and a text without a cell
(``dpcore.domain.texts``) is not counted. So neighbours differ in at most one counted record.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.texts import CODES, LONGEST, cells_of, has_cell
from dpcore.errors import DataError
from schemas.survey.unit import UnitColumn
from tasks.survey.bounding import keep_identified, keep_records
from tasks.survey.private_file import call_guarded
from tasks.survey.reading import Survey, open_survey
from tasks.survey.tally import UNREAD, require_countable


def tally_texts(
    survey: Survey,
    column: str,
    domain: Domain,
    most: int,
    unit: UnitColumn | None = None,
    counts: str | None = None,
) -> Tally:
    """The private tally of the texts of a column; nulls are not counted.

    ``survey`` is private; ``domain``: the domain of all texts.  A count is cut at ``most``.  Raises
    ``DataError``, without any value.
    """
    with open_survey(survey) as (table, _, unfit):
        if unfit:
            raise DataError(UNREAD)
        cells, found = call_guarded(
            lambda: _count(table, column, unit, counts),
            DataError,
            "the survey table could not be tallied",
        )
    tally = Tally.of(domain, cells, found)
    return Tally(domain, tally.cells, np.minimum(tally.counts, most))


def _count(
    table: Any, column: str, unit: UnitColumn | None, counts: str | None
) -> tuple[Integers, Integers]:
    read = [column, *([unit.column] if unit else []), *filter(None, [counts])]
    table = table.select(*read)
    # Longer texts have no cell, so the engine need not send them. It counts characters, of which a text
    # has no more than bytes.
    table = table.filter(table[column].notnull() & (table[column].length() <= LONGEST))
    if unit:
        table = keep_records(keep_identified(table, unit), unit.model_copy(update={"max_rows": 1}))
    records = table.count() if counts is None else table[counts].sum().cast("int64")
    grouped = table.group_by(_text=table[column]).aggregate(records=records).to_pyarrow()
    number = grouped["records"].to_numpy()
    require_countable(number)
    texts = grouped["_text"].to_pylist()
    kept = np.array([has_cell(text) for text in texts], dtype=bool) & (number > 0)
    cells = cells_of([text for text, keep in zip(texts, kept.tolist(), strict=True) if keep])
    return cells.reshape(-1, CODES), number[kept].astype(np.int64)
