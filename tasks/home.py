"""Where dprelease keeps what it keeps: one folder, closed to everybody but its owner.

    DPRELEASE_HOME      the folder; by default ``dprelease`` in the user's data folder
    DPRELEASE_LEDGER    the ledger's URL; by default an SQLite file in that folder

The ledger's place does not depend on the working directory: a dataset with two ledgers would be
granted its budget twice.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def home() -> Path:
    """The folder, made if it is not there, readable by its owner alone."""
    default = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "dprelease"
    return private_folder(Path(os.environ.get("DPRELEASE_HOME") or default).absolute())


def ledger_url() -> str:
    """The ledger's URL; it may hold a password, so it is never printed or passed to Prefect."""
    return os.environ.get("DPRELEASE_LEDGER") or f"sqlite:///{home() / 'ledger.sqlite'}"


def private_folder(path: Path) -> Path:
    """A folder that only its owner can enter."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)
    return path


@contextmanager
def private_workspace(dataset: str, release_id: str) -> Iterator[Path]:
    """A folder for files that hold private values; it is removed when the run ends, however.

    What a killed run left behind is removed by the next one.
    """
    parent = private_folder(home() / "private")
    for leftover in parent.iterdir():
        if not _alive(leftover.name.rpartition(".")[2]):
            shutil.rmtree(leftover, ignore_errors=True)
    folder = private_folder(parent / f"{dataset}.{release_id}.{os.getpid()}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
