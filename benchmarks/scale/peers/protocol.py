"""What the process of a library gets, measures and prints.

    start    imports, and the engine where there is one, before anything of the survey is read
    load     from the Parquet file to where the library's queries read it
    query    from there to the noisy counts as Python values: one release at epsilon 1, repeated

Processor time and memory include all processes that it started (Linux, ``/proc``): a Java process does
Spark's work.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

EPSILON = 1
LONG = 60
"""No query begins after this many seconds of queries."""

T = TypeVar("T")
Counts = Iterable[tuple[str, str, float]]


@dataclass(frozen=True)
class Survey:
    """A Parquet file of two text columns, and what is public of it: categories and rows."""

    source: str
    columns: dict[str, list[str]]
    rows: int

    @property
    def names(self) -> tuple[str, str]:
        first, second = self.columns
        return first, second

    @property
    def cells(self) -> list[tuple[str, str]]:
        """All pairs of categories, row-major."""
        first, second = self.columns.values()
        return list(product(first, second))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Survey:
        return cls(**json.loads(path.read_text()))


def report(
    package: str,
    neighbours: str,
    start: Callable[[], Any],
    load: Callable[[Any, Survey], Any],
    query: Callable[[Any, Survey], Counts],
) -> None:
    """Measure the three steps, and print the line: ``PEER SURVEY.json REPEATS``.

    ``neighbours`` is the neighbouring relation of the library's epsilon.  ``counts`` has one noisy
    count for each cell of the survey, null where the library returned none.
    """
    path, repeats = sys.argv[1:]
    survey = Survey.read(Path(path))
    engine, start_seconds, _ = timed(start)
    table, load_seconds, _ = timed(lambda: load(engine, survey))
    walls: list[float] = []
    cpus: list[float] = []
    while len(walls) < int(repeats) and sum(walls) < LONG:
        counts, wall, cpu = timed(lambda: list(query(table, survey)))
        walls.append(wall)
        cpus.append(cpu)
    found = {(first, second): count for first, second, count in counts}
    line = {
        "version": version(package),
        "neighbours": neighbours,
        "rows": survey.rows,
        "start_seconds": round(start_seconds, 3),
        "load_seconds": round(load_seconds, 3),
        "query_seconds": round(median(walls), 4),
        "cpu_seconds": round(median(cpus), 4),
        "queries": len(walls),
        "peak_mb": round(peak_bytes() / 1e6),
        "counts": [found.get(cell) for cell in survey.cells],
    }
    print(json.dumps(line), flush=True)


def timed(action: Callable[[], T]) -> tuple[T, float, float]:
    """The result, and the wall and processor seconds that it took."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = action()
    return result, time.perf_counter() - wall, cpu_seconds() - cpu


def cpu_seconds() -> float:
    """Processor seconds of this process and of its descendants, those that have ended included."""
    ticks = 0
    for process in descendants():
        fields = after_name(process)
        ticks += sum(map(int, fields[11:15]))  # utime, stime, and those of ended children
    ended = os.times().children_user + os.times().children_system
    return time.process_time() + ended + ticks / os.sysconf("SC_CLK_TCK")


def peak_bytes() -> int:
    """The most memory that each living process held, added up: no less than they held at once."""
    found = 0
    for process in [os.getpid(), *descendants()]:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                found += int(line.split()[1]) * 1024
    return found


def descendants() -> list[int]:
    """Living processes that this one started, and those that they started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(after_name(int(entry.name))[1])
            except (FileNotFoundError, ProcessLookupError):  # it has just ended
                continue
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def after_name(process: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` from the state on: the name before may hold blanks."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
