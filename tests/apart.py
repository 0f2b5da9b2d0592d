"""Call a function in a process of its own, as one that forks, is killed or traces memory needs.

It is forked from a process without threads, which has imported once what takes seconds to import.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

from tests.conftest import ROOT

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.flows.races", "tests.tasks.ledger.test_processes"])


def apart(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What a module's function returns there; its error is raised here."""
    # The first call starts what all are forked from: it is to have no threads of OpenBLAS either.
    with (
        patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"),
        ProcessPoolExecutor(1, CONTEXT) as process,
    ):
        return process.submit(_called, dict(os.environ), function, *arguments, **keywords).result()


def _called(
    environment: dict[str, str], function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> Any:
    """With the environment of the test, and not of the first that was called."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    return function(*arguments, **keywords)
