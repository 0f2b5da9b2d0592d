"""Lists folders. An unreadable folder is an error, and never counts as empty or missing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpcore.errors import UnreadableError


@contextmanager
def readable(place: Path) -> Iterator[None]:
    """Within this context, raise ``UnreadableError`` if something at this path cannot be read."""
    try:
        yield
    except OSError as error:
        where = error.filename or place
        raise UnreadableError(f"{where}: cannot be read ({error.strerror})") from None


def folders_in(folder: Path) -> dict[str, Path]:
    """The folders in a folder by name, without hidden ones, which hold unfinished work of runs.

    Empty if there is no such folder; raises ``UnreadableError`` if it cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UnreadableError(
            f"{folder}: cannot be read ({error.strerror}), so its bundles are unknown; make it"
            " readable"
        ) from None
    return {name: folder / name for name in sorted(names) if not name.startswith(".")}


def entries_in(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Everything inside a folder, at any depth; raises ``UnreadableError``."""
    with readable(folder), os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from entries_in(Path(entry.path))


def is_empty(folder: Path) -> bool:
    """Whether a folder is empty or missing; raises ``UnreadableError``."""
    with readable(folder):
        try:
            return not os.listdir(folder)
        except FileNotFoundError:
            return True


def has_file(folder: Path, name: str) -> bool:
    """Whether a folder has a file of this name; raises ``UnreadableError`` if it cannot be read."""
    with readable(folder):
        try:
            (folder / name).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True
