"""The private side of a release on each engine: when a cluster is worth it.

    python -m benchmarks.scale.engines --plot engines.png

makes surveys of six columns of text categories (100,000 cells in all) as Parquet files, and prints one
JSON line for each number of records and each engine, from a process of its own:

    engine      DuckDB copies the survey into a workspace; Spark reads it where it is, in one process
                of two threads (local[2])
    start       seconds to start Spark; DuckDB is a library
    read        seconds to copy or open the survey, validate it, and tally all 21 one- and two-way
                margins from one reading
    *_cpu       the same in processor seconds, including those of Spark's own process (on Linux)

The tallies of both are compared, value by value.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scale.peers.protocol import timed
from benchmarks.tally import SHAPES, described, domain_of, releases_of, write_survey
from dpcore.domain.tally import Tally
from schemas.survey.source import SparkSource
from tasks.survey.engines.spark import open_spark
from tasks.survey.ingest import ingest
from tasks.survey.reading import Survey, held_open
from tasks.survey.tally import Counting, tallies
from tasks.survey.validate import validate

ENGINES = ("duckdb", "spark")
MASTER = "local[2]"
Line = dict[str, Any]


def main() -> None:
    """Measure every size on every engine; draw the plot if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--largest", type=float, default=1e7, help="most records; default: 1e7")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures as a picture")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        engine, source, rows = options.measure
        print(json.dumps(measure(engine, Path(source), int(rows))))
        return
    found: list[Line] = []
    rows = 10_000
    while rows <= options.largest:
        with tempfile.TemporaryDirectory() as folder:
            source = write_survey(Path(folder), domain_of(SHAPES[100_000]), rows)
            for engine in ENGINES:
                command = [sys.executable, "-m", "benchmarks.scale.engines", "--measure", engine]
                done = subprocess.run(
                    [*command, str(source), str(rows)],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                print(done.stdout, end="", flush=True)
                found.append(json.loads(done.stdout))
        if found[-1]["tallies"] != found[-2]["tallies"]:
            raise SystemExit("the engines disagree")
        rows *= 10
    if options.plot:
        plot(found, options.plot)


def measure(engine: str, source: Path, rows: int) -> Line:
    """The figures of one engine and survey."""
    import pandera.ibis  # noqa: F401, what both engines need

    domain = domain_of(SHAPES[100_000])
    columns = described(domain)
    margins = [release.domain for release in releases_of(domain, rows, "histogram")]

    def read() -> list[Tally]:
        if engine == "spark":
            place = SparkSource(spark=MASTER, parquet=str(source))
            survey: Survey = open_spark(place, columns, rows)
        else:
            survey = ingest(str(source), columns, rows, source.parent / "work")
        with held_open(survey) as opened:
            validate(opened, columns)
            return tallies(opened, margins, Counting(rows=rows))

    _, start, start_cpu = timed(start_spark if engine == "spark" else lambda: None)
    found, wall, cpu = timed(read)
    digest = hashlib.sha256(b"".join(t.cells.tobytes() + t.counts.tobytes() for t in found))
    return {
        "engine": engine,
        "rows": rows,
        "start": round(start, 2),
        "read": round(wall, 2),
        "start_cpu": round(start_cpu, 2),
        "read_cpu": round(cpu, 2),
        "tallies": digest.hexdigest()[:12],
    }


def start_spark() -> None:
    """A session in this process, which ``open_spark`` then finds."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")


def plot(found: list[Line], path: Path) -> None:
    """Processor seconds against records."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    for i, engine in enumerate(ENGINES):
        lines = [line for line in found if line["engine"] == engine]
        rows = [line["rows"] for line in lines]
        for key, style, label in (
            ("read_cpu", "-", "read, validate and tally"),
            ("start_cpu", ":", "start"),
        ):
            values = [line[key] or None for line in lines]
            if not any(values):
                continue
            axes.loglog(rows, values, style, marker=".", color=f"C{i}", label=f"{engine}: {label}")
    axes.set(xlabel="records", ylabel="processor seconds")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
