"""What a person who waits is told: one public line for each thing that happened.

The command line prints these lines; under Prefect they can be sent to the run's log by naming the
logger ``dprelease`` in PREFECT_LOGGING_EXTRA_LOGGERS.
"""

import logging
import time
from collections.abc import Callable

LOGGER = logging.getLogger("dprelease")


def say(line: str) -> None:
    """Tell the person who waits.  ``line`` holds public words only."""
    LOGGER.info(line)


def patient(step: str, every: float = 10.0) -> Callable[[str, int, int], None]:
    """A listener to ``dpcore.progress`` that tells of a step at most once in so many seconds."""
    last = time.monotonic()

    def tell(what: str, done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last >= every:
            last = time.monotonic()
            say(f"         {step} ({what}: {done} of {of})")

    return tell
