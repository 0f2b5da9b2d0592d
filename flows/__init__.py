"""The Prefect flows, and the command line that runs them."""

import os
import sys

import tasks  # noqa: F401 - before Prefect is imported, so that it reports nothing to its makers


def end_quietly() -> None:
    """Close standard error as the last exit function.

    While the interpreter shuts down, DuckDB's binding reports objects that Prefect's threads still
    hold.  Exit functions run last in, first out, so this one must be registered first.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
