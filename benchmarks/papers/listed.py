"""A function from a list (HRW, section 3.2) and a mean (WZ, section 5.2) by the exponential mechanism,
beside what a plan has otherwise: a histogram with noise, and a mean with noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from benchmarks.papers.experiment import (
    Experiment,
    Line,
    Measured,
    Row,
    noisy_tables,
    proportions,
    rounded,
    tally_of,
)
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.axes import Bins, Grid
from dpcore.domain.domain import Domain
from dpcore.line.privacy_line import perturb
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.numbers.mean import Mean
from dpcore.sampling.source import SeededSource
from papers.listed_function.release import ListedFunction
from papers.near_records.release import NearMean

CELLS, SHARE, SIZES = 32, Budget.of("1"), (100, 1_000, 10_000, 100_000)
EDGES = np.linspace(0, 1, CELLS + 1)
BINNED = Domain((Bins("x", tuple(EDGES.tolist())),))
GRID = Domain((Grid("x", 0.0, 1.0, 1024),))
LAW = stats.beta(3, 5)
LISTS = {16: 4, 1024: 32}
"""By their length: as many parameters a and b of Beta(a, b), from 1 to 8 in equal factors."""


def functions(number: int) -> Floats:
    """(functions, cells) shares of a list."""
    values = np.geomspace(1, 8, LISTS[number])
    return np.array([np.diff(stats.beta(a, b).cdf(EDGES)) for a in values for b in values])


def measure(trials: int) -> Measured:
    """Mean Kolmogorov-Smirnov distances from the exact records, and mean errors of means."""
    lines, source, generator = [], SeededSource(31), np.random.default_rng(31)
    listed = {number: functions(number) for number in LISTS}
    for rows in SIZES:
        x = LAW.rvs((trials, rows), random_state=generator)
        tables = np.array([np.histogram(each, EDGES)[0] for each in x])
        exact = np.cumsum(tables, axis=1) / rows
        noisy = noisy_tables(Histogram("h", BINNED, rows, SHARE), tables, source)
        away = np.abs(np.cumsum(proportions(noisy), axis=1) - exact).max(axis=1)
        line: Line = {"n": rows, "trials": trials, "histogram": rounded(float(away.mean()))}
        for number, shares in listed.items():
            names, rows_of = tuple(map(str, range(number))), tuple(map(tuple, shares.tolist()))
            release = ListedFunction("l", BINNED, rows, SHARE, names, rows_of)
            found = []
            for counts, of in zip(tables, exact, strict=True):
                tally = tally_of(BINNED, np.repeat(np.arange(CELLS), counts))
                drawn = perturb(release.statistic(tally), release.mechanism, SHARE, source)
                found.append(np.abs(np.cumsum(shares[drawn.values[0]]) - of).max())
            line[f"list of {number}"] = rounded(float(np.mean(found)))
        errors = {"exponential": [], "mean": []}
        for each in x:
            tally = tally_of(GRID, np.minimum(each * 1024, 1023).astype(np.int64))
            near, mean = NearMean("n", GRID, rows, SHARE), Mean("m", GRID, rows, SHARE)
            centre = float(tally.counts @ tally.cells) / rows
            cell = perturb(near.statistic(tally), near.mechanism, SHARE, source).values[0]
            total = perturb(mean.statistic(tally), mean.mechanism, SHARE, source).values[0]
            errors["exponential"].append(abs(cell - centre) / 1024)
            errors["mean"].append(abs(total / rows - centre) / 1024)
        line |= {name: rounded(float(np.mean(found))) for name, found in errors.items()}
        lines.append(line)
    return Measured(lines, lambda figure: _draw(lines, figure))


def _draw(lines: list[Line], figure: Any) -> None:
    axes = figure.subplots(1, 2)
    ways = ["histogram", *(f"list of {number}" for number in LISTS)], ["exponential", "mean"]
    for axis, names, label in zip(axes, ways, ("distance", "error of the mean"), strict=True):
        for name in names:
            axis.plot(SIZES, [line[name] for line in lines], marker="o", label=name)
        axis.set(xlabel="records", ylabel=label, xscale="log", yscale="log")
        axis.legend()


def _beside(lines: list[Line]) -> list[Row]:
    found: list[Row] = []
    for line in lines[:2]:
        of_lists = ", ".join(f"{line[f'list of {number}']:.3g}" for number in LISTS)
        here = f"{of_lists}, {line['histogram']:.3g}"
        found.append((f"distances, n = {line['n']:,}", "", here))
    last = lines[-1]
    here = f"{last['exponential']:.3g}, {last['mean']:.3g}"
    return [*found, (f"errors of a mean, n = {last['n']:,}", "both of order 1/n", here)]


EXPERIMENTS = (
    Experiment(
        "hrw-3.2",
        "A function from a list, and a mean, by the exponential mechanism",
        "HRW 2013, section 3.2, and WZ 2010, section 5.2",
        "Kolmogorov-Smirnov distances at alpha = 1: of the choice from"
        f" {' and from '.join(map(str, LISTS))} functions (`kind: listed-function`), and of a noisy"
        " histogram, which is nearer from 1,000 records on. Errors of a mean: by the exponential"
        " mechanism and by `mean`.",
        60,
        measure,
        _beside,
    ),
)
