"""A line of JSON for each step, run and notice, in the file that DPRELEASE_EVENTS names.

    {"at": "2026-12-01T06:00:09+00:00", "event": "step", "step": "tally", "about": "", "seconds": 0.22}
    {"at": "2026-12-01T06:00:15+00:00", "event": "run", "dataset": "visits", "outcome": "0", ...}

Everything in a line is public, like the words of the log, except the seconds, which depend on the data.
So only the file's owner can read the file.  If the file cannot be written, no release stops, and one
warning is logged.
"""

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache

from dpcore.errors import DPReleaseError, InputError
from tasks.workplace.places import place

VARIABLE = "DPRELEASE_EVENTS"
WAITS = "waits"
"""The outcome of a run that waits for a decision."""

INTERRUPTED = "interrupted"


def record_event(event: str, **facts: str | float) -> None:
    """Append an event.  ``facts`` must be public."""
    try:
        path = place(VARIABLE)
    except InputError as error:
        return _say_once(str(error))
    if path is None:
        return None
    at = datetime.now(UTC).isoformat(timespec="seconds")
    line = json.dumps({"at": at, "event": event, **facts}, ensure_ascii=False) + "\n"
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())  # in one write, because processes may share the file
        finally:
            os.close(file)
    except OSError as error:
        _say_once(f"{VARIABLE}: events cannot be written ({error.strerror})")


@cache
def _say_once(line: str) -> None:
    logging.getLogger("dprelease").warning(line)


@contextmanager
def recorded_run(dataset: str, release_id: str) -> Iterator[None]:
    """Record how the run in this context ends: by its exit code, or as waiting or interrupted."""
    begun, outcome = time.monotonic(), "0"
    try:
        yield
    except DPReleaseError as error:
        outcome = str(error.exit_code)
        raise
    except Exception:
        outcome = "1"
        raise
    except BaseException as signal:  # Prefect suspends a run by raising Pause
        outcome = WAITS if type(signal).__name__ == "Pause" else INTERRUPTED
        raise
    finally:
        seconds = round(time.monotonic() - begun, 2)
        record_event(
            "run", dataset=dataset, release_id=release_id, outcome=outcome, seconds=seconds
        )
