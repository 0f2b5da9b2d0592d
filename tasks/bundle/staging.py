"""The folder in which a bundle is built, next to its final path, until it is moved there whole.

A bundle is renamed when it is complete, open to its readers and on disk, so that a crash or a full disk
never leaves part of one.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISGID, S_IWGRP

from dpcore.errors import DPReleaseError, InputError
from tasks.workplace.home import claim_outside, flush_folder, private_workspace

READABLE = 0o755
"""The most that the mode of a published folder allows: only its owner may write."""

SHARED = READABLE | S_ISGID | S_IWGRP
"""The most that the mode of a dataset's folder allows if its parent passes its group on: the group may
write too."""


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """An empty folder next to the bundle's path, on the same disk; removed at the end.

    Only this run uses it: runs of the same release on other machines build their own folders, and the
    first to be renamed becomes the bundle.  If this run is killed, the next run of this home removes the
    folder.
    """
    with private_workspace(target.parent.name, target.name) as claim:
        staging = target.parent / f".{target.name}.{secrets.token_hex(8)}.staging"
        # Before the folder exists, so that no crash leaves it behind.
        claim_outside(claim, staging.absolute())
        try:
            _public_folder(target.parent)
            staging.mkdir(mode=0o700)  # nobody else may read an unfinished bundle
        except OSError as error:
            raise InputError(f"{target.parent} cannot be written ({error.strerror})") from None
        try:
            yield staging
        finally:
            # Tasks of a run that is being stopped may still write files.
            for _ in range(100):
                shutil.rmtree(staging, ignore_errors=True)
                if not staging.exists():
                    break


def _public_folder(folder: Path) -> None:
    """Return the folder, created if missing, with the permissions of its parent whatever the umask.

    If the parent passes its group on, so does this folder, and its group may publish in it.
    """
    if not folder.is_dir():
        _public_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        above = folder.parent.stat().st_mode
        folder.chmod(above & (SHARED if above & S_ISGID else READABLE))


def move_whole(staging: Path, target: Path) -> None:
    """Move a complete folder to its final path in one step, unless something is there already.

    Raises ``DPReleaseError`` if nothing is there and the folder cannot be moved.
    """
    try:
        os.rename(staging, target)  # fails where another run's bundle is already there
    except OSError:
        if not os.path.lexists(target):
            raise DPReleaseError(f"the bundle could not be moved to {target}") from None
    flush_folder(target.parent)


def open_to_readers(folder: Path) -> None:
    """Let everybody who may read the parent folder read the bundle, whatever the process's umask."""
    mode = folder.parent.stat().st_mode & READABLE
    for path in (folder, *folder.rglob("*")):
        set_group = path.stat().st_mode & S_ISGID
        path.chmod(mode | set_group | 0o700 if path.is_dir() else mode & 0o666 | 0o600)


def flush(folder: Path) -> None:
    """Write everything in the folder to disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            flush_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    flush_folder(folder)
