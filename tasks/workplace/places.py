"""Files and folders that environment variables name; they must outlast a run.

A worker runs each flow in a folder that is removed with the run.  A relative path would lead into it: a
ledger there would be lost, and the next run granted the whole budget. So relative paths are refused.
"""

import os
from pathlib import Path

from dpcore.errors import InputError

FLOW_RUN = "PREFECT__FLOW_RUN_ID"
"""Set where a worker has started this process for one run."""

NAMED_FILES = ("DPRELEASE_CHECKPOINT", "DPRELEASE_EVENTS", "DPRELEASE_SIGNING_KEY")
"""The files that an operator may name, other than home, ledger, plans and bundles."""


def place(variable: str) -> Path | None:
    """The path in an environment variable, or None if it is not set; raises as ``lasting``."""
    written = os.environ.get(variable)
    return lasting(Path(written), variable) if written else None


def lasting(path: Path, named_by: str) -> Path:
    """The path; raises ``InputError`` if it is relative to the folder of a worker's run."""
    if FLOW_RUN in os.environ and not path.expanduser().is_absolute():
        raise InputError(
            f"{named_by}: {path} is relative to the folder of this run, which is removed with the run;"
            " set an absolute path where the worker is started"
        )
    return path
