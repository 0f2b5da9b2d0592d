"""Checks the room that a disk has left, before anything is charged."""

import shutil
from pathlib import Path

from dpcore.errors import InputError
from tasks.workplace.home import home

AT_HOME = 16 * 2**20
"""Bytes that a new home needs."""


def require_room(folder: Path, needed: float, what: str = "") -> None:
    """Raise ``InputError`` if the folder's disk has less than ``needed`` bytes left.

    ``what``: public words for the purpose; by default the bundle, and the message states its size.
    """
    left = _left(folder)
    if left < needed:
        why = f"too little for {what}" if what else f"and the bundle needs about {_size(needed)}"
        raise InputError(f"{folder}: its disk has {_size(left)} left, {why}; nothing was charged")


def require_room_at_home() -> None:
    """Raise ``InputError`` if the home's disk is full; called when something did not start or answer."""
    if (left := _left(home())) < AT_HOME:
        raise InputError(
            f"{home()}: its disk has {_size(left)} left, too little for Prefect's database and the"
            " ledger: make room"
        )


def _left(folder: Path) -> int:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def _size(number: float) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"
