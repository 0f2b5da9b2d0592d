"""An environment for each library: they cannot all be installed together.

``PEER.txt`` pins its packages, as lines ``name==version``.  An environment is made once, and again when
its pins change.  A peer without pins runs in the environment of dprelease.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).parent


class NotInstalled(Exception):
    """The environment of a library could not be made, and why."""


def interpreter(peer: str, cache: Path) -> Path:
    """The Python of the library's environment below ``cache``; raises ``NotInstalled``."""
    pins = PINS / f"{peer}.txt"
    if not pins.exists():
        return Path(sys.executable)
    folder = cache / peer
    python, finished = folder / "bin" / "python", folder / pins.name
    if not finished.exists() or finished.read_text() != pins.read_text():
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(folder)])
        run([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(pins)])
        shutil.copy(pins, finished)
    return python


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = said[0] if said else f"{command[2]} ended with {done.returncode}"
        raise NotInstalled(f"not installed: {reason}")
