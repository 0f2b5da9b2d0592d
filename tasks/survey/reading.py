"""Opens a survey as one Ibis table in the plan's columns and types, for the private steps.

Path       a private copy in DuckDB, made by ``tasks.survey.ingest.ingest``; opened for each reading
Session    a survey that stays in its engine (``tasks.survey.engines``); open from the first reading to
           the last, so that all of them see the same records
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dpcore.errors import DataError
from tasks.survey.private_file import FAULTS, TABLE, call_guarded, confine, connect


class Session:
    """An open session with the engine in which a survey stays; ``table`` is private.

    ``unread``: by column, how many values could not be read (private): dates without the part that the
    plan asks for, as columns of another type were refused.  ``unchanged`` raises ``DataError`` if a
    reading may have seen other records than the first one.
    """

    def __init__(
        self,
        table: Any,
        unread: Mapping[str, int],
        close: Callable[[], object],
        unchanged: Callable[[], object],
    ):
        self.table = table
        self.unread = unread
        self.close = close
        self.unchanged = unchanged


Survey = Path | Session


@contextmanager
def open_survey(survey: Survey) -> Iterator[tuple[Any, Mapping[str, int]]]:
    """The table, and the number of values of the wrong type by column; both are private."""
    import ibis  # slow to import, and only the private steps need it

    if isinstance(survey, Session):
        yield survey.table, survey.unread
        survey.unchanged()
        return
    with connect(survey) as connection:
        unread = call_guarded(
            lambda: dict(connection.execute(f"FROM {FAULTS}").fetchall()),
            DataError,
            "the private copy of the survey is damaged: run again",
        )
        opened = ibis.duckdb.from_connection(connection)
        confine(connection)
        yield opened.table(TABLE), unread


def closing_survey(survey: Survey) -> AbstractContextManager[object]:
    """A context that closes the session at its end; a copy needs no closing."""
    stack = ExitStack()
    if isinstance(survey, Session):
        stack.callback(survey.close)
    return stack
