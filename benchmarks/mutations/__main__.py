"""Apply each fault to a copy, run what ought to notice it, print a table."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import Queue

from benchmarks.mutations.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
COPIED = ("benchmarks", "deployments", "docs", "dpcore", "flows", "schemas", "tasks", "tests")
TESTS = ("-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider")
SECONDS = 1800.0
"""A run that takes longer hangs, which nobody can miss."""

AUDITS = {
    f"{depth} audit": ("-m", "benchmarks.mutations.audits", depth) for depth in ("short", "full")
}


def main() -> int:
    """Print a row for each fault; 1 if the tests miss one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="faults whose name or file holds one",
    )
    parser.add_argument("--audits", action="store_true", help="also audit every kind of release")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="copies at a time")
    arguments = parser.parse_args()
    chosen = [
        each
        for each in FAULTS
        if any(text in f"{each.name} {each.file}" for text in arguments.only)
    ]
    audits = AUDITS if arguments.audits else {}
    missed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        copies: Queue[Path] = Queue()
        for i in range(arguments.jobs):
            copies.put(copy_tree(Path(folder) / str(i)))
        every = sorted({test for each in chosen for test in each.tests})
        for name, command in {"tests": [*TESTS, *every], **audits}.items():
            if fails(copies.queue[0], command):
                parser.exit(2, f"the {name} fail without any fault, so they show nothing\n")
        print(f"| fault | file | {' | '.join(['tests', *audits])} |")
        print("|---|---|---|" + len(audits) * "---|", flush=True)
        tried = pool.map(lambda fault: try_fault(fault, copies, audits.values()), chosen)
        for fault, noticed in zip(chosen, tried, strict=True):
            missed += not noticed[0]
            words = ["noticed" if each else "missed" for each in noticed]
            print(f"| {fault.name} | `{fault.file}` | {' | '.join(words)} |", flush=True)
    print(f"\n{len(chosen) - missed} of {len(chosen)} faults are noticed by the tests.")
    return int(missed > 0)


def try_fault(fault: Fault, copies: Queue[Path], audits: Iterable[Sequence[str]]) -> list[bool]:
    """Whether the tests notice a fault, and each of the audits."""
    copy = copies.get()
    file = copy / fault.file
    sound = file.read_text()
    try:
        file.write_text(apply(fault, sound))
        return [fails(copy, command) for command in ([*TESTS, *fault.tests], *audits)]
    finally:
        file.write_text(sound)
        copies.put(copy)


def apply(fault: Fault, text: str) -> str:
    """The text with the fault; raises ``ValueError`` where its line is not there exactly once."""
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: its line occurs {text.count(fault.old)} times")
    return text.replace(fault.old, fault.new)


def copy_tree(folder: Path) -> Path:
    """A copy of what the tests need, without what earlier runs left."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def fails(copy: Path, command: Sequence[str]) -> bool:
    """Whether a Python command ends with an error in the copy, or does not end."""
    environment = os.environ | {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DPRELEASE_HOME": str(copy / "home"),
    }
    run = partial(subprocess.run, cwd=copy, env=environment, capture_output=True, timeout=SECONDS)
    try:
        return run([sys.executable, *command]).returncode != 0
    except subprocess.TimeoutExpired:
        return True


if __name__ == "__main__":
    sys.exit(main())
