"""Waits for what a test needs, as long as a busy machine may take; no test waits a fixed time."""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

SECONDS = 600
"""Anything that takes longer never comes."""

BETWEEN = 0.25
"""Each look costs a server processor time too, which the test waits for."""

T = TypeVar("T")


def wait_for(look: Callable[[], T | None], what: str, said: Callable[[], str] = str) -> T:
    """The first answer that is not None, False or empty; raises ``TimeoutError`` with what was said."""
    deadline = time.monotonic() + SECONDS
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not in {SECONDS} s; said: {said()}")
        time.sleep(BETWEEN)
    return found


def wait_for_server(
    ask: Callable[[], object], process: subprocess.Popen[Any], said: Callable[[], str]
) -> None:
    """Until a server answers; raises ``RuntimeError`` with what it said if it ends before."""

    def answered() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"the server has ended; said: {said()}")
        with suppress(Exception):  # each client has its own words for a server that is not up yet
            ask()
            return True
        return False

    wait_for(answered, "the server's answer", said)
