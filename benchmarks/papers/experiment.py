"""What an experiment is, the list of them, how one is run, and draws of a release many times over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import DATA
from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact
from dpcore.releases.base import Release
from dpcore.sampling.source import RandomSource

Line = dict[str, Any]
Row = tuple[str, str, str]

MODULES = (
    "techniques",
    "risk_body",
    "count_risk",
    "sparse_histogram",
    "truncation",
    "periodic_kernel",
    "functions",
    "bandwidth_choice",
    "listed",
    "support_vectors",
    "random_privacy",
    "bins",
    "rates",
    "loss_functions",
)


@dataclass(frozen=True)
class Measured:
    """``lines``: the figures, JSON values; ``draw``: draws the plot on a matplotlib figure."""

    lines: list[Line]
    draw: Callable[[Any], None]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper.

    ``differs``: where this differs from the paper, and why; ``measure``: takes the number of trials;
    ``beside``: rows (quantity, in the paper or "", here) from the figures; ``data``: the folder of the
    public table that it needs, if any.
    """

    name: str
    title: str
    source: str
    differs: str
    trials: int
    measure: Callable[[int], Measured]
    beside: Callable[[list[Line]], list[Row]]
    data: str | None = None

    @property
    def possible(self) -> bool:
        """Whether the data are there."""
        return self.data is None or (DATA / self.data).is_dir()


def experiments() -> dict[str, Experiment]:
    """All experiments by name, in the order of the page."""
    modules = [import_module(f"benchmarks.papers.{name}") for name in MODULES]
    return {each.name: each for module in modules for each in module.EXPERIMENTS}


def run(name: str, images: Path, trials: int | None) -> list[Line]:
    """The figures of one experiment; draws papers-NAME.svg."""
    import matplotlib
    from matplotlib.figure import Figure

    start = time.process_time()
    experiment = experiments()[name]
    measured = experiment.measure(trials or experiment.trials)
    # The same figures always make the same file.
    matplotlib.rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    measured.draw(figure)
    figure.savefig(images / f"papers-{name}.svg", metadata={"Date": None})
    seconds = round(time.process_time() - start, 1)
    return [*measured.lines, {"seconds": seconds}]


def tally_of(domain: Domain, cells: Integers) -> Tally:
    """The tally of records (n,) that are given by their cells."""
    occupied, counts = np.unique(cells, return_counts=True)
    return Tally(domain, occupied, counts)


def noisy_tables(release: Release, tables: Integers, source: RandomSource) -> Integers:
    """Noisy values (times, cells): the release on each of the exact tables (times, cells).

    One batch, for mechanisms whose noise is independent from cell to cell or from table to table.
    """
    mechanism = replace(release.mechanism, size=tables.size)
    values = np.ascontiguousarray(tables).ravel()
    return perturb(Exact(values), mechanism, release.share, source).values.reshape(tables.shape)


def proportions(noisy: Integers) -> Floats:
    """(times, cells) shares: negative counts as zero, then divided by their sum; uniform if none."""
    positive = np.maximum(noisy, 0).astype(float)
    total = positive.sum(axis=-1, keepdims=True)
    return np.where(total > 0, positive / np.maximum(total, 1), 1 / noisy.shape[-1])


def rounded(value: float, digits: int = 4) -> float:
    """The value with ``digits`` significant digits."""
    return float(f"{value:.{digits}g}")
