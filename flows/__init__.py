"""The Prefect flows, and the command line that runs them."""

import atexit
import gc
import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

import tasks  # noqa: F401 - before Prefect is imported, so that it reports nothing to its makers

GARBAGE_OBJECTS = 2_000_000


def whole_process(main: Callable[[], object]) -> NoReturn:
    """Run ``main`` as this process's only work; exit once threads and exit functions have ended."""
    # A run makes many objects and few reference cycles.  Frequent garbage collection, and freeing each
    # object before the process ends, would take a quarter of its time.
    gc.set_threshold(GARBAGE_OBJECTS)
    atexit.register(end_quietly)  # registered first, so that it runs last
    try:
        given = main()
        code = given if isinstance(given, int) else 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]  # as in a child of multiprocessing
    atexit._run_exitfuncs()
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:  # the pipe is closed: the interpreter then exits with its own code
        sys.exit(code)
    os._exit(code)


def end_quietly() -> None:
    """Close standard error; register this first, so that it is the last exit function."""
    sys.stderr.flush()
    # During shutdown DuckDB's binding prints errors about objects that Prefect's threads still use.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
