"""Histograms under random differential privacy (Hall, Rinaldo & Wasserman 2011, figures 1 and 2)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.experiment import (
    Experiment,
    Line,
    Measured,
    Row,
    noisy_tables,
    proportions,
    rounded,
)
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.random_histogram import RandomHistogram
from dpcore.sampling.source import SeededSource

ALPHAS = ("0.2", "1")
GAMMA = "0.1"


def table(cells: int, occupied: int, rows: int) -> Integers:
    """(cells,) counts; ``occupied`` of them, a bump in the middle, are not zero."""
    weights = np.arange(1, occupied + 1) * np.arange(occupied, 0, -1)
    counts = np.zeros(cells, dtype=np.int64)
    start = (cells - occupied) // 2
    counts[start : start + occupied] = rows * weights // weights.sum()
    counts[start] += rows - counts.sum()
    return counts


def measure(cells: int, occupied: int, rows: int, trials: int) -> Measured:
    """L1 losses of both, ``trials`` times, at each alpha."""
    domain = Domain((Bins("x", tuple(range(cells + 1))),))
    counts, source = table(cells, occupied, rows), SeededSource(11)
    tables = np.broadcast_to(counts, (trials, cells))
    lines, found = [], {}
    for alpha in ALPHAS:
        releases = {
            "dp": Histogram("h", domain, rows, Budget.of(alpha)),
            "random_dp": RandomHistogram("h", domain, rows, Budget.of(alpha, 0, GAMMA)),
        }
        losses = {
            name: np.abs(proportions(noisy_tables(release, tables, source)) - counts / rows).sum(
                axis=1
            )
            for name, release in releases.items()
        }
        line: Line = {"cells": cells, "occupied": occupied, "n": rows, "alpha": float(alpha)}
        line |= {"gamma": rounded(float(releases["random_dp"].mechanism.event.exposure))}
        for name, loss in losses.items():
            line[f"{name}_mean"] = rounded(loss.mean())
            line[f"{name}_largest"] = rounded(loss.max())
            line[f"{name}_above_half"] = rounded(float((loss > 0.5).mean()))
        line["random_dp_smaller"] = rounded(float((losses["random_dp"] < losses["dp"]).mean()))
        line["always_smaller"] = bool(losses["random_dp"].max() < losses["dp"].min())
        lines.append(line | {"trials": trials})
        found[alpha] = losses
    return Measured(lines, lambda figure: _draw(found, figure))


def _draw(found: dict[str, dict[str, Floats]], figure: Any) -> None:
    for axes, (alpha, losses) in zip(figure.subplots(1, 2), found.items(), strict=True):
        bins = np.linspace(0, max(loss.max() for loss in losses.values()), 50)
        for name, colour in (("dp", "C3"), ("random_dp", "C0")):
            axes.hist(losses[name], bins, density=True, color=colour, alpha=0.6, label=name)
        axes.set(title=f"alpha = {alpha}", xlabel="L1 loss of the shares", yticks=[])
    axes.legend()


def _beside(lines: list[Line]) -> list[Row]:
    one_dimensional = lines[0]["cells"] == 25
    rows = [
        (
            f"mean L1 loss at alpha = {line['alpha']:g}",
            "typically much lower" if one_dimensional else "uniformly better",
            f"{line['dp_mean']:.3g}, random {line['random_dp_mean']:.3g}",
        )
        for line in lines
    ]
    if one_dimensional:
        above = ", ".join(f"{line['dp_above_half']:.1%}" for line in lines)
        rows.append(("loss above 0.5", "occasionally", f"{above} of trials"))
    rows.append(("gamma per record", "", f"{lines[0]['gamma']:g}"))
    return rows


EXPERIMENTS = (
    Experiment(
        "rdp-1",
        "Random differential privacy: 25 bins, 2 occupied",
        "RDP 2011, figure 1",
        "Our copy of the paper does not state alpha; n is 500. Each record is published exactly with"
        " probability gamma.",
        1000,
        partial(measure, 25, 2, 500),
        _beside,
    ),
    Experiment(
        "rdp-2",
        "Random differential privacy: 400 bins, 16 occupied",
        "RDP 2011, figure 2",
        "Our copy of the paper states neither alpha nor n. The mechanism needs about 2k/gamma records,"
        " so n is 10,000 here.",
        1000,
        partial(measure, 400, 16, 10_000),
        _beside,
    ),
)
