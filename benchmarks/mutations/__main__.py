"""Apply each fault to a copy, run what ought to notice it, print a table."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import Queue

from benchmarks.mutations.fault import Fault
from benchmarks.mutations.faults import FAULTS

ROOT = Path(__file__).parents[2]
COPIED = (
    *("benchmarks", "deployments", "docs", "dpcore", "flows"),
    *("papers", "schemas", "tasks", "tests"),
)
TESTS = ("-m", "pytest", "-q", "-x", "-m", "not slow", "-n", "0", "-p", "no:cacheprovider")
AUDIT = ("-m", "benchmarks.mutations.audits")
SECONDS = 1800.0
"""A run that takes longer hangs, which nobody can miss."""

WAYS = {"tests": "noticed by", "short": "short audit", "full": "full audit"}
SEEN = 0.9
"""The least part of the faults that an audit can see."""


def main() -> int:
    """Print a row for each fault; 1 if too many are missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="faults whose name or file holds one",
    )
    parser.add_argument(
        "--by", nargs="+", choices=WAYS, default=["tests"], help="what looks for them"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="copies at a time")
    arguments = parser.parse_args()
    chosen = [
        each
        for each in FAULTS
        if any(text in f"{each.name} {each.file}" for text in arguments.only)
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        copies: Queue[Path] = Queue()
        for i in range(arguments.jobs):
            copies.put(copy_tree(Path(folder) / str(i)))
        for way in arguments.by:
            if noticed(copies.queue[0], way, chosen):
                parser.exit(2, f"the {WAYS[way]} fails without any fault, so it shows nothing\n")
        print(f"| fault | file | {' | '.join(WAYS[way] for way in arguments.by)} |")
        print("|---|---|" + len(arguments.by) * "---|", flush=True)
        tried = pool.map(lambda fault: try_fault(fault, copies, arguments.by), chosen)
        for fault, words in zip(chosen, tried, strict=True):
            found.append(words)
            print(f"| {fault.name} | `{fault.file}` | {' | '.join(words)} |", flush=True)
    return summary(arguments.by, found)


def summary(ways: Sequence[str], found: Sequence[Sequence[str]]) -> int:
    """Print how many faults were noticed in each way; 1 if too many were missed."""
    wrong = False
    for way, words in zip(ways, zip(*found, strict=True), strict=True):
        possible = [each for each in words if not each.startswith("cannot")]
        count = sum(each != "misses it" for each in possible)
        least = SEEN if way != "tests" else 1.0
        wrong |= count < least * len(possible)
        print(f"\n{WAYS[way]}: {count} of {len(possible)} faults that it can see.")
    return int(wrong)


def try_fault(fault: Fault, copies: Queue[Path], ways: Sequence[str]) -> list[str]:
    """What each way of looking says of a fault."""
    copy = copies.get()
    file = copy / fault.file
    sound = file.read_text()
    try:
        file.write_text(apply(fault, sound))
        return [
            f"cannot: {fault.unseen}"
            if way != "tests" and fault.unseen
            else noticed(copy, way, [fault]) or "misses it"
            for way in ways
        ]
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


def noticed(copy: Path, way: str, faults: Sequence[Fault]) -> str:
    """What shows that something is wrong in the copy, among what these faults name; else nothing."""
    if way == "tests":
        command = [*TESTS, *sorted({test for fault in faults for test in fault.tests})]
    else:
        command = [*AUDIT, way, *sorted({fault.audit for fault in faults if fault.audit})]
    environment = os.environ | {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "DPRELEASE_HOME": str(copy / "home"),
    }
    run = partial(subprocess.run, cwd=copy, env=environment, capture_output=True, timeout=SECONDS)
    try:
        ended = run([sys.executable, *command], text=True)
    except subprocess.TimeoutExpired:
        return "does not end"
    if ended.returncode == 0:
        return ""
    if way != "tests":
        return "sees it"
    failed = re.search(r"^(?:FAILED|ERROR) ([\w/]+\.py)(?:::(\w+))?", ended.stdout, re.MULTILINE)
    if failed is None:
        return "an error"
    return "`" + "::".join(filter(None, (Path(failed[1]).name, failed[2]))) + "`"


if __name__ == "__main__":
    sys.exit(main())
