"""Our best density against noisy histograms smoothed with the same kernel, at equal alpha.

    python -m benchmarks.densities --draws 20

prints one line of JSON for each table, its columns and alpha: the distance from the exact kernel
estimate of the records' own values, reflected at the bounds, as a part of that estimate's own size (root
mean squares over the published grid and the draws).

    best        the mechanism that ``mechanism: best`` takes without beta, and its name
    opendp      discrete Laplace noise on counts (``make_laplace``)
    diffprivlib geometric noise on counts, cut at zero (``tools.histogramdd``)
    ratio       best over the better of the others

A record is replaced by another one, for all alike.  The others' histograms have cells of one bandwidth,
a half and a quarter; theirs is the grid of least error, which they could not know, and ``ratio at half``
is over the better of them on cells of half a bandwidth.  OpenDP draws both noises: that of diffprivlib
has the same law and is cut, and its histogram is scaled to the number of records.
``--picture FILE`` draws the first map beside its exact estimate.

The tables are those of ``CHOSEN``: CSV or Parquet files anywhere under ``--data``, by default the folder
of the test tables.  Those that are not there are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import DATA
from benchmarks.coverage.shapes import bumps, exact_density
from dpcore.arrays import Floats
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact, Noisy
from dpcore.post.tables.simplex import project_to_simplex
from dpcore.releases.densities.density import Density
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan

ALPHAS = ("1/2", "1", "4")

GRIDS = (1.0, 0.5, 0.25)
"""Cells of the others' histograms, in bandwidths."""


class Columns(NamedTuple):
    """Columns of a table with their bounds, all public; ``bandwidth``: a fraction of each range."""

    table: str
    bounds: Mapping[str, tuple[float, float]]
    bandwidth: float


PROFILE = "Mean of the integrated pulse profile"

CHOSEN = (
    Columns("uber.parquet", {"Lon": (-74.1, -73.7), "Lat": (40.55, 40.95)}, 0.02),
    Columns("uber.parquet", {"Lon": (-74.1, -73.7)}, 0.02),
    Columns("california_housing.parquet", {"longitude": (-125, -114), "latitude": (32, 42)}, 0.03),
    Columns("california_housing.parquet", {"median_income": (0, 16)}, 0.03),
    Columns("cps1988.csv", {"wage": (0, 3000)}, 0.02),
    Columns("cps1988.csv", {"wage": (0, 3000), "experience": (-5, 65)}, 0.05),
    Columns("randhie.csv", {"disea": (0, 60)}, 0.03),
    Columns("randhie.csv", {"lpi": (0, 8), "disea": (0, 60)}, 0.05),
    Columns("htru2.csv", {PROFILE: (0, 200)}, 0.03),
    Columns("htru2.csv", {PROFILE: (0, 200), "Mean of the DM-SNR curve": (0, 230)}, 0.05),
    Columns("magic04.parquet", {"fAlpha": (0, 90)}, 0.05),
    Columns("magic04.parquet", {"fLength": (0, 350)}, 0.02),
    Columns("magic04.parquet", {"fLength": (0, 350), "fAlpha": (0, 90)}, 0.05),
)


def main() -> None:
    """Print a line for each table and alpha, or draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the tables")
    parser.add_argument("--draws", type=int, default=20, help="of each noise; default: 20")
    parser.add_argument("--table", help="only columns of this file")
    parser.add_argument("--picture", type=Path, help="draw the first map at alpha 1, as PNG or SVG")
    options = parser.parse_args()
    for columns in CHOSEN:
        found = sorted(options.data.rglob(columns.table))
        if not found or options.table not in (None, columns.table):
            continue
        values = records(found[0], columns.bounds)
        if options.picture and len(columns.bounds) == 2:
            draw_map(columns, values, options.picture)
            return
        if not options.picture:
            for row in compared(columns, values, options.draws):
                print(json.dumps(row), flush=True)


def records(path: Path, bounds: Mapping[str, tuple[float, float]]) -> Floats:
    """(rows, columns) values scaled to [0, 1]; those beyond the bounds are moved to them."""
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    chosen = table[list(bounds)].dropna().to_numpy(dtype=float)
    lower, upper = np.array(list(bounds.values()), dtype=float).T
    return np.asarray(np.clip((chosen - lower) / (upper - lower), 0.0, 1.0))


def best(columns: Columns, rows: int, alpha: str) -> tuple[Density, str]:
    """The release that a plan with ``mechanism: best`` builds, and the name of the mechanism."""
    grid = 2**16 if len(columns.bounds) == 1 else 2**12
    plan = Plan.model_validate(
        {
            "dprelease": 1,
            "dataset": "d",
            "source": "withheld",
            "rows": rows,
            "privacy_unit": "row",
            "neighbours": "replace-one",
            "budget": {"granted": {"alpha": alpha}, "requested": {"alpha": alpha}},
            "columns": {
                f"x{i}": {"type": "continuous", "bounds": [0, 1], "grid": grid, "description": "x"}
                for i in range(len(columns.bounds))
            },
            "releases": [
                {
                    "name": "d",
                    "kind": "density",
                    "columns": [f"x{i}" for i in range(len(columns.bounds))],
                    "bandwidth": columns.bandwidth,
                    "mechanism": "best",
                }
            ],
            "publication": {"title": "t", "description": "d", "publisher": "p", "citation": "c"},
        }
    )
    release = plan.built["d"]
    assert isinstance(release, Density)
    return release, plan.section("d").mechanism


def compared(columns: Columns, values: Floats, draws: int) -> Iterator[dict[str, Any]]:
    """A row for each alpha."""
    exact: Floats | None = None
    for alpha in ALPHAS:
        release, name = best(columns, len(values), alpha)
        exact = exact_density(release, values) if exact is None else exact
        size = float(np.sqrt((exact**2).mean()))
        raw, fitted = _ours(release, values, exact, draws)
        row = {
            "table": columns.table,
            "columns": list(columns.bounds),
            "rows": len(values),
            "bandwidth": columns.bandwidth,
            "alpha": alpha,
            "mechanism": name,
            "best": fitted / size,
            "estimate": raw / size,
        }
        scale = 2 / float(release.share.alpha)
        halves = []
        for peer, cut in (("opendp", False), ("diffprivlib", True)):
            errors = [_theirs(release, values, exact, g, scale, cut, draws) for g in GRIDS]
            row |= {peer: min(errors) / size, f"{peer} grid": GRIDS[int(np.argmin(errors))]}
            halves.append(errors[GRIDS.index(0.5)] / size)
        row["ratio at half"] = row["best"] / min(halves)
        row["ratio"] = row["best"] / min(row["opendp"], row["diffprivlib"])
        yield {key: round(v, 5) if isinstance(v, float) else v for key, v in row.items()}


def _ours(release: Density, values: Floats, exact: Floats, draws: int) -> tuple[float, float]:
    """Root mean squared errors of ``estimate`` and of ``density``."""
    sums, source, squares = statistic(release, values), SeededSource(1), np.zeros(2)
    for _ in range(draws):
        noisy = perturb(sums, release.mechanism, release.share, source)
        squares += [np.mean((found - exact) ** 2) for found in estimates(release, noisy)]
    raw, fitted = np.sqrt(squares / draws)
    return float(raw), float(fitted)


def statistic(release: Density, values: Floats) -> Exact:
    """That of the values on the columns' grids."""
    sizes = np.array(release.domain.shape)
    codes = np.minimum((values * sizes).astype(np.int64), sizes - 1)
    cells, counts = np.unique(release.domain.pack(codes), return_counts=True)
    return release.statistic(Tally(release.domain, cells, counts))


def estimates(release: Density, noisy: Noisy) -> tuple[Floats, Floats]:
    """``estimate`` and ``density`` of a draw, on the published grid, relative to a uniform one."""
    estimate = release.printed.density(release.coefficients(noisy))
    cells = project_to_simplex(estimate.ravel() / estimate.size, 1.0)
    return estimate, cells.reshape(estimate.shape) * estimate.size


def opendp_laplace(scale: float) -> Callable[[Floats], Floats]:
    """OpenDP's noise on counts."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return lambda counts: np.reshape(
        np.array(measurement([int(c) for c in counts.ravel()]), dtype=float), counts.shape
    )


def _theirs(
    release: Density,
    values: Floats,
    exact: Floats,
    cell: float,
    scale: float,
    cut: bool,
    draws: int,
) -> float:
    """Root mean squared error of a noisy histogram that is smoothed with the same kernel."""
    shape = tuple(int(np.ceil(1 / h / cell)) for h in release.bandwidths)
    counts, _ = np.histogramdd(values, bins=shape, range=[(0, 1)] * len(shape))
    centres = [(np.arange(size) + 0.5) / size for size in shape]
    smooth = [
        bumps(size, h, x)
        for size, h, x in zip(release.printed.shape, release.bandwidths, centres, strict=True)
    ]
    add_noise, squares = opendp_laplace(scale), 0.0
    for _ in range(draws):
        noisy = add_noise(counts)
        if cut:
            noisy = np.maximum(noisy, 0)
            noisy *= len(values) / max(noisy.sum(), 1)
        found = smooth[0] @ noisy if len(smooth) == 1 else smooth[0] @ noisy @ smooth[1].T
        squares += float(np.mean((found / len(values) - exact) ** 2))
    return float(np.sqrt(squares / draws))


def draw_map(columns: Columns, values: Floats, path: Path) -> None:
    """The exact estimate beside the private one at alpha 1, in one scale of colours."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    release, name = best(columns, len(values), "1")
    exact = exact_density(release, values)
    drawn = perturb(statistic(release, values), release.mechanism, release.share, SeededSource(1))
    _, private = estimates(release, drawn)
    error = float(np.sqrt(((private - exact) ** 2).mean() / (exact**2).mean()))
    panels = ("exact kernel estimate", exact), (f"{name}, alpha 1: {error:.1%} off", private)
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
    (across, up), bounds = columns.bounds, list(columns.bounds.values())
    for ax, (title, shown) in zip(axes, panels, strict=True):
        # Colours by the square root, so that thin places are seen.
        ax.imshow(
            np.sqrt(np.maximum(shown, 0)).T,
            origin="lower",
            extent=(*bounds[0], *bounds[1]),
            aspect="auto",
            vmin=0,
            vmax=float(np.sqrt(exact.max())),
        )
        ax.set(title=title, xlabel=across)
    axes[0].set_ylabel(up)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
