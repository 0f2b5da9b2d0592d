"""The folder for private files and the default ledger, readable by its owner alone.

    DPRELEASE_HOME      the folder; by default ``dprelease`` in the user's data folder
    DPRELEASE_LEDGER    the ledger's URL; by default an SQLite file in that folder

The ledger's location does not depend on the working directory, because a dataset with two ledgers would
be granted its budget twice.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TextIO

from dpcore.errors import InputError
from tasks.workplace.places import FLOW_RUN, lasting, place

OUTSIDE = "outside"
"""The name of a workspace's link to a folder elsewhere, which is removed with the workspace."""


def home() -> Path:
    """The path of dprelease's home, which is created if it is missing."""
    data = Path(os.environ.get("XDG_DATA_HOME", ""))  # its standard says to ignore a relative path
    default = (data if data.is_absolute() else Path.home() / ".local/share") / "dprelease"
    return private_folder((place("DPRELEASE_HOME") or default).absolute())


def ledger_url() -> str:
    """The ledger's URL; it may hold a password, so it is never printed or passed to Prefect.

    The path of a file is made absolute.  In a worker's run, raises ``InputError`` if it is relative, or
    if no ledger is named: two workers with a ledger each would spend a budget twice.
    """
    if FLOW_RUN in os.environ and not os.environ.get("DPRELEASE_LEDGER"):
        raise InputError(
            "DPRELEASE_LEDGER: is not set where the worker is started; name the ledger that all workers"
            " share"
        )
    url = os.environ.get("DPRELEASE_LEDGER") or f"sqlite:///{home() / 'ledger.sqlite'}"
    file = _file_of(url)
    if file is None:
        return url
    absolute = lasting(file, "DPRELEASE_LEDGER").expanduser().absolute()
    return f"{url.partition(':///')[0]}:///{absolute}"


def ledger_file() -> Path | None:
    """The file of the ledger; None for a server, or for a URL that is not valid."""
    return _file_of(ledger_url())


def _file_of(url: str) -> Path | None:
    engine, _, path = url.partition(":///")
    if engine not in ("sqlite", "sqlite+pysqlite") or path in ("", ":memory:") or "?" in path:
        return None
    return Path(path)


def ledger_exists() -> bool:
    """Whether there is a ledger to open; opening a missing SQLite file would create it."""
    file = ledger_file()
    try:
        return file is None or file.exists()
    except OSError:
        return True  # unknown; opening it raises the reason


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter; if it already is one, its disk may be read-only."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.stat().st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise InputError(
            f"{path} cannot be created or made private ({error.strerror}); name another folder in"
            " DPRELEASE_HOME"
        ) from None
    return path


def flush_folder(folder: Path) -> None:
    """Write a folder's list of names to disk, so that a power failure loses no new or moved file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A new text file, which replaces the one at ``path`` in one step if writing it raises nothing."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for a lock file and hold it; the system releases it if the process dies."""
    try:
        file = path.open("w")
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}); name another folder in DPRELEASE_HOME"
        ) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def one_at_a_time(dataset: str) -> AbstractContextManager[None]:
    """Wait until no other run on this machine holds the dataset's lock, and hold it."""
    return locked(private_folder(home() / "locks") / f"{dataset}.dataset")


@contextmanager
def private_workspace(dataset: str, release_id: str) -> Iterator[Path]:
    """A folder for files that hold private values; it is removed when the run ends.

    Its file ``in-use`` is locked while the run lives, so that ``remove_abandoned`` recognises the
    folders of killed runs, also those of other containers.
    """
    parent = private_folder(home() / "private")
    # No other run may see the folder before its file is locked, or would take it for abandoned.
    with locked(parent / ".lock"):
        folder = Path(tempfile.mkdtemp(prefix=f"{dataset}.{release_id}.", dir=parent))
        in_use = (folder / "in-use").open("w")
        fcntl.flock(in_use, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        in_use.close()


def claim_outside(workspace: Path, folder: Path) -> None:
    """Register a folder outside the workspace, before it exists, for removal if the run is killed."""
    (workspace / OUTSIDE).symlink_to(folder)


def remove_abandoned() -> None:
    """Remove the files of killed runs; every run begins with this."""
    parent = private_folder(home() / "private")
    with locked(parent / ".lock"):
        for folder in [path for path in parent.iterdir() if path.is_dir()]:
            if not _in_use(folder):
                # The other folder first: without the link, nobody would find it again.
                if (folder / OUTSIDE).is_symlink():
                    shutil.rmtree((folder / OUTSIDE).readlink(), ignore_errors=True)
                shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    try:
        with (folder / "in-use").open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
