"""Opens a survey as one Ibis table in the plan's columns and types, for the private steps.

Path       a private copy in DuckDB, made by ``tasks.survey.ingest.ingest``; opened for each reading,
           unless it is ``held_open``
Session    a survey that stays in its engine (``tasks.survey.engines``); open from the first reading to
           the last, so that all of them see the same records
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from duckdb import DuckDBPyConnection

from dpcore.errors import DataError
from tasks.survey.private_file import FAULTS, TABLE, UNFIT, call_guarded, confine, connect

Unread: TypeAlias = Mapping[str, Mapping[str, int]]
"""By column, the number of values that could not be read, by their kind (``sql.look``); private."""


@dataclass(frozen=True, eq=False)
class Session:
    """An open session with the engine in which a survey stays; ``table`` is private.

    ``unread``: for each column, the number of values that could not be read, by kind (private).
    ``unfit``: sentences, without values or counts, on what in the table does not fit the plan.
    ``unchanged`` raises ``DataError`` if the records may have changed since the first reading.
    """

    table: Any = field(repr=False)
    unread: Unread = field(repr=False)
    unfit: Sequence[str]
    close: Callable[[], object] = lambda: None
    unchanged: Callable[[], object] = lambda: None


Survey = Path | Session


@contextmanager
def open_survey(survey: Survey) -> Iterator[tuple[Any, Unread, Sequence[str]]]:
    """The table, the numbers of values of the wrong type by column, and sentences on what does not fit.

    The first two are private. The sentences have no values or counts: they name statements of the plan
    that the table contradicts.
    """
    import ibis  # slow to import, and only the private steps need it

    if isinstance(survey, Session):
        yield survey.table, survey.unread, survey.unfit
        survey.unchanged()
        return
    with connect(survey) as connection:
        unread: dict[str, dict[str, int]] = {}
        for name, cause, failures in _rows(connection, FAULTS):
            unread.setdefault(name, {})
            if failures:
                unread[name][cause] = failures
        unfit = [line for (line,) in _rows(connection, UNFIT)]
        opened = ibis.duckdb.from_connection(connection)
        confine(connection)
        yield opened.table(TABLE), unread, unfit


@contextmanager
def held_open(survey: Survey) -> Iterator[Session]:
    """Yield the survey for several readings, and close it at the end; a private copy does not change, so
    it is opened only once."""
    if isinstance(survey, Session):
        try:
            yield survey
        finally:
            survey.close()
        return
    with open_survey(survey) as (table, unread, unfit):
        yield Session(table, unread, unfit)


def _rows(connection: DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    return call_guarded(
        lambda: connection.execute(f"FROM {table}").fetchall(),
        DataError,
        "the private copy of the survey is damaged: run again",
    )
