"""Thresholded against plain noise on sparse tables (Hall 2012, figures 2.3 and 2.4)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import DATA
from benchmarks.papers.experiment import (
    Experiment,
    Line,
    Measured,
    Row,
    noisy_tables,
    rounded,
)
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.sampling.source import RandomSource, SeededSource

SHARE = Budget.of(1)
BATCH = 2**21
"""Cells drawn at a time."""


def read(table: str) -> Tally:
    """One of the two public tables."""
    if table == "edwards_mildew":
        frame = pd.read_csv(DATA / table / "edwards_cells.csv")
    else:
        frame = pd.read_parquet(DATA / table / "nltcs_cells.parquet")
    frame = frame[frame["count"] > 0]
    columns = [name for name in frame.columns if name != "count"]
    values = (1, 2) if table == "edwards_mildew" else (0, 1)
    domain = Domain(tuple(Categories(name, values) for name in columns))
    cells = domain.pack(frame[columns].to_numpy(dtype=np.int64) - values[0])
    order = np.argsort(cells)
    return Tally(domain, cells[order], frame["count"].to_numpy(dtype=np.int64)[order])


def dense_errors(release: Histogram, tally: Tally, times: int, source: RandomSource) -> Floats:
    """(times,) L1 errors of plain noise, negative values replaced by zeros."""
    exact, errors = tally.dense(), []
    step = max(1, BATCH // len(exact))
    for start in range(0, times, step):
        tables = np.broadcast_to(exact, (min(step, times - start), len(exact)))
        noisy = noisy_tables(release, tables, source)
        errors.append(np.abs(np.maximum(noisy, 0) - exact).sum(axis=1))
    return np.concatenate(errors).astype(float)


def sparse_errors(release: Histogram, tally: Tally, times: int, source: RandomSource) -> Floats:
    """(times,) L1 errors of the thresholded histogram; a cell that is absent counts as zero."""
    exact, rows = tally.dense(), int(tally.counts.sum())
    errors = []
    for _ in range(times):
        statistic = Exact(tally.counts, tally.cells)
        noisy = perturb(statistic, release.mechanism, release.share, source)
        kept = exact[noisy.cells]
        errors.append(rows + np.abs(noisy.values - kept).sum() - kept.sum())
    return np.array(errors, dtype=float)


def measure(table: str, trials: int) -> Measured:
    """Errors of both methods, ``trials`` times."""
    tally, source = read(table), SeededSource(23)
    rows, cells, occupied = int(tally.counts.sum()), tally.domain.size, len(tally.cells)
    releases = {
        name: kind("table", tally.domain, rows, SHARE)
        for name, kind in (("laplace", Histogram), ("sparse", ThresholdedHistogram))
    }
    errors = {
        "laplace": dense_errors(releases["laplace"], tally, trials, source),
        "sparse": sparse_errors(releases["sparse"], tally, trials, source),
    }
    bound = (2 * occupied + 1) * (np.log(cells) + 1) / float(SHARE.alpha)
    line: Line = {
        "table": table,
        "n": rows,
        "p": cells,
        "q": occupied,
        "alpha": 1,
        "trials": trials,
    }
    line |= {f"{name}_mean": rounded(found.mean()) for name, found in errors.items()}
    line |= {f"{name}_stddev": rounded(found.std(ddof=1)) for name, found in errors.items()}
    line |= {
        "sparse_smaller": rounded(float((errors["sparse"] < errors["laplace"]).mean())),
        "bound": rounded(float(bound)),
        "2p/alpha": 2 * cells,
        "nothing": rows,
    }
    return Measured([line], lambda figure: _draw(errors, rows, figure))


def _draw(errors: dict[str, Floats], rows: int, figure: Any) -> None:
    axes = figure.subplots()
    bins = np.linspace(0, np.concatenate(list(errors.values())).max(), 90)
    for (name, found), colour in zip(errors.items(), ("C3", "C0"), strict=True):
        axes.hist(found, bins, density=True, color=colour, alpha=0.6, label=name)
    axes.axvline(rows, color="k", linestyle=":", label="publishing zeros")
    axes.set(xlabel="L1 error of the table", ylabel="density", yticks=[])
    axes.legend()


def _beside(lines: list[Line]) -> list[Row]:
    (line,) = lines
    return [
        (
            "L1 error of Laplace noise",
            f"about {line['2p/alpha']:,}",
            f"{line['laplace_mean']:,.0f}",
        ),
        (
            "of sparse noise",
            f"at most {line['bound']:,.0f}",
            f"{line['sparse_mean']:,.0f}",
        ),
        ("of zeros", "", f"{line['nothing']:,}"),
    ]


EXPERIMENTS = (
    Experiment(
        "hall-2.3",
        "Sparse histogram: Edwards' mildew data",
        "Hall 2012, figure 2.3",
        "alpha, which the thesis does not state, is 1. Negative counts become zeros here.",
        15_000,
        partial(measure, "edwards_mildew"),
        _beside,
        "edwards_mildew",
    ),
    Experiment(
        "hall-2.4",
        "Sparse histogram: National Long Term Care Survey",
        "Hall 2012, figure 2.4",
        "The plain table is worse than zeros; the thresholded one keeps the few large cells.",
        1_000,
        partial(measure, "nltcs"),
        _beside,
        "nltcs",
    ),
)
