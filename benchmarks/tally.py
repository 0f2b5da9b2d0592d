"""The time of a whole private release, compared with the one reading of the survey that it needs.

    python -m benchmarks.tally --rows 10000000

makes a survey of six categorical columns, once with 192 and once with 100,000 cells in all, and
releases all 21 one- and two-way margins of it.  One JSON line for each, from a process of its own:

    packed      seconds of the GROUP BY over the packed cell alone
    release     seconds of the tallies (that reading and the roll-up), the exact statistics, the
                privacy line and the published tables; ingest is excluded
    ratio       release over packed
    apart       seconds of 21 readings, one for each margin, without packing
    peak_mib    peak memory of the process, including DuckDB's

and the same with ``_cpu``, in processor seconds, which other work on the machine hardly changes.
Times are medians over ``--repeats``; packed and release alternate.  ``--kind margins`` draws the 21
tables as one release of kind margins instead of 21 histograms.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import median

import ibis

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.line.privacy_line import perturb
from dpcore.releases.base import Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.margins import MarginTables
from dpcore.sampling.source import SystemSource
from schemas.survey.columns import CategoricalColumn, Column
from tasks.survey.cells import count_cells
from tasks.survey.ingest import ingest
from tasks.survey.private_file import TABLE, connect
from tasks.survey.tally import Counting, tallies

SHAPES = {192: (2, 2, 2, 2, 3, 4), 100_000: (10, 10, 10, 10, 5, 2)}
SETS = tuple((i,) for i in range(6)) + tuple(combinations(range(6), 2))
ALPHA = Fraction(1)


def main() -> None:
    """Make each survey, and measure it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="default: 10 million")
    parser.add_argument("--repeats", type=int, default=5, help="default: 5")
    parser.add_argument("--kind", choices=["histogram", "margins"], default="histogram")
    parser.add_argument("--cells", type=int, choices=SHAPES, help="default: both")
    parser.add_argument("--measure", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        domain = domain_of(SHAPES[options.cells])
        found = measure(options.measure, domain, options.rows, options.kind, options.repeats)
        print(json.dumps(found))
        return
    for cells in [options.cells] if options.cells else SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            database = make_survey(Path(folder), domain_of(SHAPES[cells]), options.rows)
            command = [sys.executable, "-m", "benchmarks.tally", "--measure", str(database)]
            command += ["--cells", str(cells), "--rows", str(options.rows), "--kind", options.kind]
            subprocess.run([*command, "--repeats", str(options.repeats)], check=True)


def domain_of(shape: tuple[int, ...]) -> Domain:
    """Columns of text categories."""
    return Domain(
        tuple(
            Categories(f"column{i}", tuple(f"value {j}" for j in range(size)))
            for i, size in enumerate(shape)
        )
    )


def make_survey(folder: Path, domain: Domain, rows: int) -> Path:
    """A survey of uneven columns, ingested; returns the file."""
    source = write_survey(folder, domain, rows)
    database = ingest(str(source), described(domain), rows, folder / "work")
    source.unlink()
    return database


def write_survey(folder: Path, domain: Domain, rows: int) -> Path:
    """A survey of uneven columns, as a Parquet file."""
    source = folder / "survey.parquet"
    columns = ", ".join(
        f"'value ' || CAST(floor({axis.size} * random() * random()) AS INTEGER) AS {axis.name}"
        for axis in domain.axes
    )
    with connect(folder / "made.duckdb", read_only=False) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{source}'")
    return source


def described(domain: Domain) -> dict[str, Column]:
    """The columns of a plan for it."""
    return {
        axis.name: CategoricalColumn(type="categorical", categories=list(axis.categories))
        for axis in domain.axes
        if isinstance(axis, Categories)
    }


def measure(
    database: Path, domain: Domain, rows: int, kind: str, repeats: int
) -> dict[str, object]:
    """The figures of one survey."""
    releases = releases_of(domain, rows, kind)
    domains = [release.domain for release in releases]

    def packed() -> None:
        with connect(database) as connection:
            table = ibis.duckdb.from_connection(connection).table(TABLE)
            count_cells(table, domain.axes).to_pyarrow()

    def release() -> None:
        for release, tally in zip(
            releases, tallies(database, domains, Counting(rows=rows)), strict=True
        ):
            exact = release.statistic(tally)
            release.publish(perturb(exact, release.mechanism, release.share, SystemSource()))

    turns = [(*seconds(packed), *seconds(release)) for _ in range(repeats)]
    wall, cpu, release_wall, release_cpu = map(median, zip(*turns, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    margins = [domain.select(tuple(domain.names[a] for a in attrs)) for attrs in SETS]
    apart = seconds(
        lambda: [tallies(database, [margin], Counting(rows=rows)) for margin in margins]
    )
    return {
        "rows": rows,
        "cells": domain.size,
        "occupied": len(tallies(database, [domain], Counting(rows=rows))[0].cells),
        "kind": kind,
        "tables": len(SETS),
        "packed": round(wall, 3),
        "release": round(release_wall, 3),
        "ratio": round(release_wall / wall, 2),
        "apart": round(apart[0], 3),
        "packed_cpu": round(cpu, 3),
        "release_cpu": round(release_cpu, 3),
        "ratio_cpu": round(release_cpu / cpu, 2),
        "apart_cpu": round(apart[1], 3),
        "peak_mib": round(peak),
    }


def releases_of(domain: Domain, rows: int, kind: str) -> list[Release]:
    """All margins, as 21 histograms with equal shares or as one release."""
    if kind == "margins":
        return [MarginTables("margins", domain, rows, Budget(ALPHA), sets=SETS)]
    names = domain.names
    return [
        Histogram(f"margin{i}", domain.select(tuple(names[a] for a in attrs)), rows, share)
        for i, attrs in enumerate(SETS)
        for share in [Budget(ALPHA / len(SETS))]
    ]


def seconds(action: Callable[[], object]) -> tuple[float, float]:
    """Wall time and processor time of one call."""
    start, worked = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start, time.process_time() - worked


if __name__ == "__main__":
    main()
