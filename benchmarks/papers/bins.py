"""The perturbed histogram against its number of bins (Wasserman & Zhou 2010, figure 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate, stats

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
from dpcore.sampling.source import SeededSource

BINS = (5, 10, 15, 20, 30, 40, 50)
ALPHAS = (None, "1", "0.1")
DENSITIES = {"Beta(10, 10)": ((10, 10),), "bimodal": ((10, 3), (3, 10))}


def cumulative(law: str, x: Floats) -> Floats:
    """Distribution function of an equal mixture of beta laws."""
    return np.mean([stats.beta(a, b).cdf(x) for a, b in DENSITIES[law]], axis=0)


def square(law: str) -> float:
    """Integral of the squared density."""
    laws = [stats.beta(a, b) for a, b in DENSITIES[law]]
    return float(integrate.quad(lambda x: np.mean([d.pdf(x) for d in laws]) ** 2, 0, 1)[0])


def squared_errors(law: str, shares: Floats) -> Floats:
    """(times,) integrated squared errors of histogram densities with shares (times, m)."""
    m = shares.shape[1]
    exact = np.diff(cumulative(law, np.linspace(0, 1, m + 1)))
    return square(law) + m * ((shares**2).sum(axis=1) - 2 * shares @ exact)


def samples(law: str, rows: int, m: int, times: int, generator: np.random.Generator) -> Integers:
    """(times, m) counts of samples of ``rows`` records."""
    exact = np.diff(cumulative(law, np.linspace(0, 1, m + 1)))
    return generator.multinomial(rows, exact / exact.sum(), size=times)


def measure(trials: int) -> Measured:
    """Mean integrated squared error for every law, n, alpha and number of bins."""
    generator, source, lines = np.random.default_rng(1), SeededSource(1), []
    for law in DENSITIES:
        for rows in (100, 1000):
            for alpha in ALPHAS:
                errors = []
                for m in BINS:
                    tables = samples(law, rows, m, trials, generator)
                    if alpha:
                        domain = Domain((Bins("x", tuple(np.linspace(0, 1, m + 1).tolist())),))
                        release = Histogram("h", domain, rows, Budget.of(alpha))
                        tables = noisy_tables(release, tables, source)
                    errors.append(rounded(squared_errors(law, proportions(tables)).mean()))
                line = {"law": law, "n": rows, "alpha": alpha, "bins": list(BINS), "ise": errors}
                lines.append(line | {"best_bins": BINS[int(np.argmin(errors))], "trials": trials})
    return Measured(lines, lambda figure: _draw(lines, figure))


def _draw(lines: list[Line], figure: Any) -> None:
    for axes, rows in zip(figure.subplots(1, 2), (100, 1000), strict=True):
        for line in lines:
            if line["law"] == "Beta(10, 10)" and line["n"] == rows:
                label = f"alpha = {line['alpha']}" if line["alpha"] else "no noise"
                axes.semilogy(line["bins"], line["ise"], marker="o", markersize=3, label=label)
        axes.set(title=f"n = {rows}", xlabel="bins", ylabel="mean integrated squared error")
    axes.legend()


def _noise_of(line: Line) -> str:
    return f"(alpha {line['alpha']})" if line["alpha"] else "(no noise)"


def _beside(lines: list[Line]) -> list[Row]:
    shown = [line for line in lines if line["law"] == "Beta(10, 10)"]
    return [
        (
            f"best number of bins, n = {rows:,}",
            "",
            ", ".join(
                f"{line['best_bins']} {_noise_of(line)}" for line in shown if line["n"] == rows
            ),
        )
        for rows in dict.fromkeys(line["n"] for line in shown)
    ]


EXPERIMENTS = (
    Experiment(
        "wz-1",
        "The perturbed histogram and its number of bins",
        "WZ 2010, figure 1 and section 7",
        "For Beta(10, 10). With noise fewer bins are best, as the paper says. Our copy of the paper"
        " states neither n nor alpha.",
        1000,
        measure,
        _beside,
    ),
)
