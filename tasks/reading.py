"""A survey as the private steps read it: one Ibis table in the plan's columns and types.

Path       a private copy in DuckDB, made by ``tasks.survey.ingest``; opened for each reading
Session    a survey that stays in its engine (``tasks.engines``); open from the first reading to
           the last, so that all of them see the same records
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dpcore.errors import DataError
from tasks.survey import FAULTS, TABLE, connect, guarded


class Session:
    """An open session with the engine in which a survey stays; ``table`` is private.

    ``unchanged`` raises ``DataError`` where a reading may have seen other records than the first.
    No value is of the wrong type: a column whose type does not fit was refused.
    """

    def __init__(
        self,
        table: Any,
        columns: Mapping[str, object],
        close: Callable[[], object],
        unchanged: Callable[[], object],
    ):
        self.table = table
        self.unread = dict.fromkeys(columns, 0)
        self.close = close
        self.unchanged = unchanged


Survey = Path | Session


@contextmanager
def reading(survey: Survey) -> Iterator[tuple[Any, Mapping[str, int]]]:
    """The table, and the number of values of the wrong type by column; both are private."""
    import ibis  # slow to import, and only the private steps need it

    if isinstance(survey, Session):
        yield survey.table, survey.unread
        survey.unchanged()
        return
    with connect(survey) as connection:
        unread = guarded(
            lambda: dict(connection.execute(f"FROM {FAULTS}").fetchall()),
            DataError,
            "the survey file is not whole: ingest the table again",
        )
        yield ibis.duckdb.from_connection(connection).table(TABLE), unread


def held(survey: Survey) -> AbstractContextManager[object]:
    """Close a session at the end, however it comes."""
    stack = ExitStack()
    if isinstance(survey, Session):
        stack.callback(survey.close)
    return stack
