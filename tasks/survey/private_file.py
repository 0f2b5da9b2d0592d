"""Opens the private DuckDB file of a survey, and keeps its values out of error messages.

Everything in its folder is private: only its owner can read it, and DuckDB's temporary files are in it
too.  DuckDB's own messages quote the data, so ``call_guarded`` drops them.
"""

import glob
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import duckdb

from dpcore.errors import DPReleaseError, InputError

FILE = "survey.duckdb"
TABLE = "survey"
FAULTS = "conversion"
UNFIT = "unfit"
MEMORY_LIMIT = "2GiB"
"""The memory that DuckDB may use; beyond it, it writes temporary files into the workspace."""

T = TypeVar("T")


def call_guarded(action: Callable[[], T], error: type[DPReleaseError], message: str) -> T:
    """Call ``action``; if it fails, raise ``error`` with the message instead of its exception.

    Libraries that read data quote it in their exceptions.  The new error is raised outside the
    ``except`` block, so that neither its cause nor its context holds a value.
    """
    try:
        return action()
    except DPReleaseError:
        raise
    except duckdb.OutOfMemoryException:
        kind = too_little_memory()
    except Exception as failure:
        kind = type(failure).__name__
    raise error(f"{message} ({kind})")


def too_little_memory() -> str:
    """The reason and advice if DuckDB's memory does not suffice."""
    return (
        f"more than {MEMORY_LIMIT} of memory are needed: leave columns out of the plan, or divide it"
        " into several plans"
    )


@contextmanager
def connect(path: Path, read_only: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a private DuckDB file, closed at the end.

    DuckDB may not fetch extensions from the network, writes temporary files into its folder only, and
    shows no progress bar.  Raises ``InputError`` if DuckDB cannot open the file.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": str(path.parent / "spill"),
        "memory_limit": MEMORY_LIMIT,
        # No step depends on the order of records, and keeping it needs more memory.
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    connection = call_guarded(
        lambda: duckdb.connect(str(path), read_only=read_only, config=config),
        InputError,
        f"{path}: cannot be opened as a DuckDB file",
    )
    try:
        hide_bar(connection)
        if not read_only:  # the file's own folder stays accessible when `confine` closes all others
            connection.execute("SET allowed_directories = ?", [[str(path.parent)]])
        # Casts between times with and without a zone use the session's zone; no cast here depends on it.
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
    finally:
        connection.close()


def confine(connection: duckdb.DuckDBPyConnection, *files: Path) -> None:
    """Let the connection open only these files and, if it writes, files in its own folder.

    Attached files stay open.  Neither this nor any other setting can be changed afterwards.
    """
    # Otherwise a view in a source could read any file of this user.
    # A path is compared as it is written in the query, where its wildcards are escaped.
    written = [each for file in files for each in (str(file), glob.escape(str(file)))]
    connection.execute("SET allowed_paths = ?", [written])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def hide_bar(connection: duckdb.DuckDBPyConnection) -> None:
    """Switch the progress bar off; notebooks without widgets have none, and the setting fails there."""
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
