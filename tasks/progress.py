"""What a person who waits is told: one public line for each thing that happened.

The command line prints these lines; under Prefect they can be sent to the run's log by naming the
logger ``dprelease`` in PREFECT_LOGGING_EXTRA_LOGGERS.
"""

import logging

LOGGER = logging.getLogger("dprelease")


def say(line: str) -> None:
    """Tell the person who waits.  ``line`` holds public words only."""
    LOGGER.info(line)
