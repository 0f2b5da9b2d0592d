"""How much room a disk has left, before anything is charged."""

import shutil
from pathlib import Path

from dpcore.errors import InputError


def require_room(folder: Path, needed: float, what: str = "") -> None:
    """Raise ``InputError`` if the folder's disk has less than ``needed`` bytes left.

    ``what``: public words for what needs them; by default the bundle, and the message states the number.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    left = shutil.disk_usage(there).free
    if left < needed:
        why = f"too little for {what}" if what else f"and the bundle needs about {_size(needed)}"
        raise InputError(f"{folder}: its disk has {_size(left)} left, {why}; nothing was charged")


def _size(number: float) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"
