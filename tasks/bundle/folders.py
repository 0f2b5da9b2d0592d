"""Which bundles a folder holds.  A folder that cannot be read is an error, not an empty one."""

import os
from pathlib import Path

from dpcore.errors import InputError
from tasks.bundle.digests import MANIFEST


def folders_in(folder: Path) -> dict[str, Path]:
    """The folders in a folder by name, but hidden ones, which hold the unfinished work of runs.

    None where there is no such folder; raises ``InputError`` where it cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be read ({error.strerror}), so that nobody knows which bundles it holds"
        ) from None
    return {name: folder / name for name in sorted(names) if not name.startswith(".")}


def has_manifest(bundle: Path) -> bool:
    """Whether a folder is a bundle, whole or damaged; raises ``InputError`` where nobody can tell."""
    return has_file(bundle, MANIFEST)


def has_file(folder: Path, name: str) -> bool:
    """Whether a folder has a file of this name; raises ``InputError`` where nobody can tell."""
    try:
        (folder / name).lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None
    return True
