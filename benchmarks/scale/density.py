"""Densities after the tally do not feel the records; and what the tally's grid costs in accuracy.

    python -m benchmarks.scale.density --plot density.png

prints one JSON line for each number of records n and 1 or 2 dimensions:

    tally       processor seconds of the one reading of the ingested survey
    after       processor seconds of statistic, privacy line and published tables, given the tally
    exact       processor seconds of the kernel estimator's coefficients from the n records one by one
                (up to ``--exact`` records)
    grid_error  integrated squared difference between the two estimates without noise
    noise       integrated squared error that the release states for its noise

Columns are scaled to [0, 1].  The records are a mixture of two normal laws, cut off at the bounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpcore.budget import Budget
from dpcore.domain import Domain, Grid, Tally
from dpcore.privacy_line import perturb
from dpcore.releases.spectral_density import SpectralDensity
from dpcore.sampling.source import SystemSource
from schemas.columns import ContinuousColumn
from tasks.survey import connect, ingest
from tasks.tally import tallies

BANDWIDTH = {1: 0.05, 2: 0.1}
CELLS = {1: 1024, 2: 256}
SHARE = Budget(Fraction(1), Fraction(1, 10**6))


def main() -> None:
    """Measure every size; draw the plot if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--largest", type=float, default=1e7, help="most records; default: 1e7")
    parser.add_argument("--exact", type=float, default=1e7, help="most for the exact; default: 1e7")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures as a picture")
    options = parser.parse_args()
    measure(1, 1000, False)  # what is loaded on first use is not counted
    found = []
    for dimensions in (1, 2):
        rows = 10_000
        while rows <= options.largest:
            found.append(measure(dimensions, rows, rows <= options.exact))
            print(json.dumps(found[-1]), flush=True)
            rows *= 10
    if options.plot:
        plot(found, options.plot)


def measure(dimensions: int, rows: int, with_exact: bool) -> dict[str, float | int | None]:
    """The figures of one size."""
    names = ["x", "y"][:dimensions]
    domain = Domain(tuple(Grid(name, 0.0, 1.0, CELLS[dimensions]) for name in names))
    bandwidths = (BANDWIDTH[dimensions],) * dimensions
    release = SpectralDensity("density", domain, rows, SHARE, bandwidths=bandwidths)
    with tempfile.TemporaryDirectory() as folder:
        database = make_survey(Path(folder), names, rows)
        start = time.process_time()
        tally = tallies(database, [domain], rows)[0]
        tallied = time.process_time() - start
        exact = exact_coefficients(release, read(database, names)) if with_exact else None
    start = time.process_time()
    noisy = perturb(release.statistic(tally), release.mechanism, SHARE, SystemSource())
    release.publish(noisy)
    after = time.process_time() - start
    return {
        "dimensions": dimensions,
        "rows": rows,
        "tally": round(tallied, 3),
        "after": round(after, 4),
        "exact": round(exact[1], 3) if exact else None,
        "grid_error": squared(exact[0] - grid_coefficients(release, tally)) if exact else None,
        "noise": squared(np.sqrt(release.coefficient_variances)),
    }


def squared(coefficients: NDArray[np.float64]) -> float:
    """Integrated squared value of the function with these coefficients (Parseval)."""
    return float(f"{float(coefficients @ coefficients):.3g}")


def make_survey(folder: Path, names: list[str], rows: int) -> Path:
    """An ingested survey of one or two columns."""
    normal = "sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())"
    column = f"least(greatest(if(random() < 0.3, 0.25, 0.6) + 0.08 * {normal}, 0), 1)"
    columns = ", ".join(f"{column} AS {name}" for name in names)
    source = folder / "survey.parquet"
    with connect(folder / "made.duckdb", read_only=False) as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{source}'")
    described = {name: ContinuousColumn(type="continuous", bounds=(0.0, 1.0)) for name in names}
    database = ingest(str(source), described, rows, folder / "work")
    source.unlink()
    return database


def read(database: Path, names: list[str]) -> NDArray[np.float64]:
    """(rows, dimensions) records."""
    with connect(database) as connection:
        found = connection.execute("SELECT * FROM survey").fetchnumpy()
    return np.column_stack([found[name] for name in names])


def exact_coefficients(
    release: SpectralDensity, records: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
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


def grid_coefficients(release: SpectralDensity, tally: Tally) -> NDArray[np.float64]:
    """The same from the tally, before any noise."""
    weights = tally.dense().reshape(release.domain.shape) / release.rows
    return release.basis.lambdas * release.basis.means(weights)


def plot(found: list[dict[str, float | int | None]], path: Path) -> None:
    """Time against n, and errors against n."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for dimensions, style in ((1, "-"), (2, "--")):
        lines = [line for line in found if line["dimensions"] == dimensions]
        for axes, keys in ((left, ("tally", "after", "exact")), (right, ("grid_error", "noise"))):
            for i, key in enumerate(keys):
                points = [(line["rows"], line[key]) for line in lines if line[key] is not None]
                label = f"{key.replace('_', ' ')}, {dimensions}-D"
                axes.loglog(
                    *zip(*points, strict=True), style, marker="o", color=f"C{i}", label=label
                )
    left.set(xlabel="records", ylabel="processor seconds")
    right.set(xlabel="records", ylabel="integrated squared error")
    for axes in (left, right):
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
