"""Time of densities and classifiers after the tally, and the error of the tally's grid.

    python -m benchmarks.scale.after_tally --plot after-tally.png

makes surveys of 10^4 to ``--largest`` records of three numbers, each a DuckDB file as in a release,
and prints one JSON line for each number of records n and each of a density of one column, a
density of two, and a classifier of the third by the other two:

    tally       processor seconds of the one reading of the ingested survey
    occupied    cells of the tally that hold a record
    after       processor seconds of statistic, privacy line and published tables, given the tally
    noise       integrated squared error that a density states for its noise; standard error of a
                classifier's decision value
    exact       processor seconds of the kernel estimator's coefficients from the n records one by one
                (densities of up to ``--exact`` records)
    grid_error  integrated squared difference between the two estimates without noise

Columns are scaled to [0, 1].  The records are a mixture of two normal laws, cut off at the bounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.axes import Bins, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.base import Release
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.machines.classifier import Classifier
from dpcore.sampling.source import SystemSource
from schemas.survey.columns import ContinuousColumn
from tasks.survey.ingest import ingest
from tasks.survey.private_file import connect
from tasks.survey.tally import Counting, tallies

SHARE = Budget(Fraction(1), Fraction(1, 10**6))
COLUMNS = ("x", "y", "z")
LABELS = {
    "tally": "reading the survey",
    "after": "after the tally",
    "exact": "record by record",
    "noise": "noise",
    "grid_error": "grid",
}
Line = dict[str, str | float | int | None]


def main() -> None:
    """Measure every size; draw the plot if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--largest", type=float, default=1e8, help="most records; default: 1e8")
    parser.add_argument("--exact", type=float, default=1e7, help="most for the exact; default: 1e7")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures as a picture")
    options = parser.parse_args()
    list(measure(1000, exact=True))  # loads everything that is loaded on first use
    found: list[Line] = []
    rows = 10_000
    while rows <= options.largest:
        for line in measure(rows, exact=rows <= options.exact):
            print(json.dumps(line), flush=True)
            found.append(line)
        rows *= 10
    if options.plot:
        plot(found, options.plot)


def releases(rows: int) -> dict[str, Release]:
    """What is measured."""

    def density(bandwidth: float, cells: int, names: str) -> Release:
        domain = Domain(tuple(Grid(name, 0.0, 1.0, cells) for name in names))
        return SpectralDensity("d", domain, rows, SHARE, bandwidths=(bandwidth,) * len(names))

    features = [Grid(name, 0.0, 1.0, 64) for name in "xy"]
    domain = Domain((*features, Bins("z", (0.0, 0.5, 1.0))))
    machine = Classifier("c", domain, rows, SHARE, (0.3, 0.3), 0.01, 128, (-1, 1), "hinge")
    return {
        "density 1-D": density(0.05, 1024, "x"),
        "density 2-D": density(0.1, 256, "xy"),
        "classifier": machine,
    }


def measure(rows: int, exact: bool) -> Iterator[Line]:
    """The figures of one size."""
    with tempfile.TemporaryDirectory() as folder:
        database = make_survey(Path(folder), rows)
        for name, release in releases(rows).items():
            start = time.process_time()
            tally = tallies(database, [release.domain], Counting(rows=rows))[0]
            tallied = time.process_time() - start
            start = time.process_time()
            noisy = perturb(release.statistic(tally), release.mechanism, SHARE, SystemSource())
            release.publish(noisy)
            after = time.process_time() - start
            line: Line = {
                "release": name,
                "rows": rows,
                "tally": round(tallied, 3),
                "occupied": len(tally.cells),
                "after": round(after, 4),
            }
            if isinstance(release, SpectralDensity):
                line["noise"] = squared(np.sqrt(release.coefficient_variances))
                if exact:
                    line |= beside_exact(release, tally, read(database, release.domain.names))
            elif isinstance(release, Classifier):
                line["noise"] = float(f"{release.decision_stddev:.3g}")
            yield line


def beside_exact(release: SpectralDensity, tally: Tally, records: Floats) -> Line:
    """Seconds of the estimator that reads every record, and the distance of the grid's from it."""
    exact, seconds = exact_coefficients(release, records)
    error = squared(exact - grid_coefficients(release, tally))
    return {"exact": round(seconds, 3), "grid_error": error}


def squared(coefficients: Floats) -> float:
    """Integrated squared value of the function with these coefficients (Parseval)."""
    return float(f"{float(coefficients @ coefficients):.3g}")


def make_survey(folder: Path, rows: int) -> Path:
    """An ingested survey; z is the larger, the larger x is."""
    normal = "sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())"
    column = f"if(random() < 0.3, 0.25, 0.6) + 0.08 * {normal}"
    made = f"SELECT {column} AS x, {column} AS y, 0.2 * {normal} AS z FROM range({rows})"
    columns = "least(greatest(x, 0), 1) AS x, least(greatest(y, 0), 1) AS y"
    columns += ", least(greatest(x + z, 0), 1) AS z"
    source = folder / "survey.parquet"
    with connect(folder / "made.duckdb", read_only=False) as connection:
        connection.execute(f"COPY (SELECT {columns} FROM ({made})) TO '{source}'")
    described = {name: ContinuousColumn(type="continuous", bounds=(0.0, 1.0)) for name in COLUMNS}
    database = ingest(str(source), described, rows, folder / "work")
    source.unlink()
    return database


def read(database: Path, names: Sequence[str]) -> Floats:
    """(rows, dimensions) records."""
    with connect(database) as connection:
        found = connection.execute(f"SELECT {', '.join(names)} FROM survey").fetchnumpy()
    return np.column_stack([found[name] for name in names])


def exact_coefficients(release: SpectralDensity, records: Floats) -> tuple[Floats, float]:
    """theta_k = lambda_k * mean of phi_k over the records themselves, and the seconds it took."""
    start = time.process_time()
    frequencies = release.basis.frequencies
    sums = np.zeros(len(frequencies))
    for part in np.array_split(records, max(1, len(records) // 10_000)):
        waves = [
            np.sqrt(2.0) * np.cos(np.pi * part[:, i, None] * np.arange(frequencies[:, i].max() + 1))
            for i in range(part.shape[1])
        ]
        for wave in waves:
            wave[:, 0] = 1.0
        table = waves[0].sum(axis=0) if len(waves) == 1 else waves[0].T @ waves[1]
        sums += table[tuple(frequencies.T)]
    return release.basis.lambdas * sums / len(records), time.process_time() - start


def grid_coefficients(release: SpectralDensity, tally: Tally) -> Floats:
    """The same from the tally, before any noise."""
    weights = tally.dense().reshape(release.domain.shape) / release.rows
    return release.basis.lambdas * release.basis.means(weights)


def plot(found: list[Line], path: Path) -> None:
    """Time against n, and errors of densities against n."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, name in enumerate(releases(1000)):
        lines = [line for line in found if line["release"] == name]
        for axes, key, style in (
            (left, "tally", ":"),
            (left, "after", "-"),
            (left, "exact", "--"),
            (right, "noise", "-"),
            (right, "grid_error", "--"),
        ):
            points = [(line["rows"], line[key]) for line in lines if line.get(key)]
            if points and (axes is left or name != "classifier"):
                label = f"{name}: {LABELS[key]}"
                axes.loglog(
                    *zip(*points, strict=True), style, marker=".", color=f"C{i}", label=label
                )
    left.set(xlabel="records", ylabel="processor seconds")
    right.set(xlabel="records", ylabel="integrated squared error")
    for axes in (left, right):
        axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
