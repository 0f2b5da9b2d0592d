"""Rates of convergence as fitted slopes (Wasserman & Zhou 2010, the two tables of section 1.1).

The density is 6 x (1 - x) on [0, 1], Lipschitz, and of Sobolev order 3/2 in the cosine basis.  Bins m,
draws k and terms are the paper's powers of n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any
from unittest.mock import patch

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
from dpcore.arrays import Floats
from dpcore.domain.axes import Bins, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.lattice import Lattice
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact
from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.densities.cosines import Cosines
from dpcore.sampling.source import RandomSource, SeededSource
from papers.near_records import by_distribution
from papers.near_records.by_series import BITS
from papers.near_records.release import NearRecords, NearSeries
from papers.sampled_histogram.release import SampledHistogram

SHARE = Budget.of(1)
SIZES = tuple(int(n) for n in np.logspace(4, 8, 9))
FINE = 1024
SERIES_CELLS = 256


def cumulative(x: Floats) -> Floats:
    """F of the density 6 x (1 - x)."""
    return x**2 * (3 - 2 * x)


def squared_error(shares: Floats) -> Floats:
    """(times,) integrated squared errors of histogram densities."""
    m = shares.shape[1]
    exact = np.diff(cumulative(np.linspace(0, 1, m + 1)))
    return 1.2 + m * ((shares**2).sum(axis=1) - 2 * shares @ exact)


def domain_of(m: int) -> Domain:
    return Domain((Bins("x", tuple(np.linspace(0, 1, m + 1).tolist())),))


def tables(rows: int, m: int, times: int, generator: np.random.Generator) -> Any:
    exact = np.diff(cumulative(np.linspace(0, 1, m + 1)))
    return generator.multinomial(rows, exact, size=times)


def smoothed(
    rows: int, m: int, k: int, times: int, generator: np.random.Generator, source: RandomSource
) -> Any:
    """(times, m) counts of k records drawn from the smoothed histogram."""
    release = SampledHistogram("s", domain_of(m), rows, SHARE, k, "smoothed-histogram")
    return noisy_tables(release, tables(rows, m, times, generator), source)


def perturbed(
    rows: int, m: int, times: int, generator: np.random.Generator, source: RandomSource
) -> Floats:
    """(times, m) shares of the perturbed histogram."""
    release = Histogram("p", domain_of(m), rows, SHARE)
    return proportions(noisy_tables(release, tables(rows, m, times, generator), source))


def smoothed_squared(rows: int, times: int, generator: Any, source: RandomSource) -> float:
    m, k = round(rows ** (1 / 5)), round(rows ** (3 / 5))
    return float(squared_error(smoothed(rows, m, k, times, generator, source) / k).mean())


def perturbed_squared(rows: int, times: int, generator: Any, source: RandomSource) -> float:
    m = round(rows ** (1 / 3))
    return float(squared_error(perturbed(rows, m, times, generator, source)).mean())


def smoothed_distance(rows: int, times: int, generator: Any, source: RandomSource) -> float:
    """Kolmogorov-Smirnov distance of k records, spread evenly in their bins."""
    m, k = round(rows ** (1 / 7)), round(rows ** (4 / 7))
    return mean_distance(smoothed(rows, m, k, times, generator, source), generator)


def near_distance(rows: int, times: int, generator: Any, source: RandomSource) -> float:
    """That of k records drawn by the exponential mechanism, over m cells."""
    m, k = round(2 * rows ** (1 / 3)), round((3 / np.pi**2 * rows) ** (2 / 3))
    release = NearRecords("k", domain_of(m), rows, SHARE, k)
    with patch.object(by_distribution, "LARGEST_WORK", 2**34):  # an experiment has no audit
        drawn = noisy_tables(release, tables(rows, m, times, generator), source)
    return mean_distance(drawn, generator)


def mean_distance(drawn: Any, generator: np.random.Generator) -> float:
    """Of records counted over m cells (times, m), spread evenly in them."""
    k, m, found = int(drawn[0].sum()), drawn.shape[1], []
    for counts in drawn:
        points = np.sort((np.repeat(np.arange(m), counts) + generator.random(k)) / m)
        exact = cumulative(points)
        found.append(max((np.arange(1, k + 1) / k - exact).max(), (exact - np.arange(k) / k).max()))
    return float(np.mean(found))


def perturbed_distance(rows: int, times: int, generator: Any, source: RandomSource) -> float:
    """That of the distribution that the shares make, from which as many as wanted can be drawn."""
    m = round(rows ** (1 / 3))
    shares = perturbed(rows, m, times, generator, source)
    x = np.linspace(0, 1, 16 * m + 1)
    ends = np.concatenate([np.zeros((times, 1)), np.cumsum(shares, axis=1)], axis=1)
    estimates = np.array([np.interp(x, np.linspace(0, 1, m + 1), one) for one in ends])
    return float(np.abs(estimates - cumulative(x)).max(axis=1).mean())


@dataclass(frozen=True)
class Series:
    """The first m cosine coefficients of a sample, with Laplace noise of sensitivity 2 c0 m/n."""

    rows: int
    terms: int

    @cached_property
    def basis(self) -> Cosines:
        return Cosines((FINE,), (0.002,), (self.terms + 1,))

    def coefficients(self, tally: Tally, source: RandomSource) -> Floats:
        # Every coefficient is a mean of sqrt2 cos, and moves by 2 sqrt2 / n at most.
        sensitivity = 2 * np.sqrt(2) * self.terms / self.rows
        lattice = Lattice.for_sensitivity(sensitivity, self.basis.size, self.rows)
        mechanism = DiscreteLaplace.within(
            SHARE, self.basis.size, Fraction(lattice.l1_sensitivity(sensitivity))
        )
        statistic = Exact(lattice.encode(self.basis.means(tally.dense() / self.rows)))
        return lattice.decode(perturb(statistic, mechanism, SHARE, source).values)


def series_squared(rows: int, times: int, generator: Any, source: RandomSource) -> float:
    series = Series(rows, 2 * round(rows ** (1 / 4) / 2))
    exact = tables(rows, FINE, times, generator)
    x = (np.arange(FINE) + 0.5) / FINE
    density, domain = 6 * x * (1 - x), Domain((Grid("x", 0.0, 1.0, FINE),))
    errors = []
    for counts in exact:
        cells = np.flatnonzero(counts)
        found = series.coefficients(Tally(domain, cells, counts[cells]), source)
        errors.append(((series.basis.density(found) - density) ** 2).mean())
    return float(np.mean(errors))


def near_series_squared(rows: int, times: int, generator: Any, source: RandomSource) -> float:
    """The density of the series of k records drawn by the exponential mechanism."""
    k = round(rows**0.5)
    terms = 2 * max(1, round(k ** (1 / 4) / 2))
    release = NearSeries("s", domain_of(SERIES_CELLS), rows, SHARE, k, terms)
    waves = release.mechanism.features / 2.0**BITS
    x, cells = (np.arange(SERIES_CELLS) + 0.5) / SERIES_CELLS, np.arange(SERIES_CELLS)
    errors = []
    for counts in tables(rows, SERIES_CELLS, times, generator):
        exact = release.statistic(Tally(release.domain, cells, counts))
        drawn = perturb(exact, release.mechanism, SHARE, source).values
        found = 1 + waves @ (drawn @ waves) / k
        errors.append(((found - 6 * x * (1 - x)) ** 2).mean())
    return float(np.mean(errors))


@dataclass(frozen=True)
class Rate:
    """``slope``: the paper's power of n; ``logarithms``: its factors of log n, as text;
    ``spared``: the number of trials is divided by this."""

    mechanism: str
    distance: str
    slope: Fraction
    logarithms: str
    error: Callable[[int, int, np.random.Generator, RandomSource], float]
    sizes: tuple[int, ...] = SIZES
    spared: int = 1


RATES = (
    Rate("smoothed histogram", "L2 squared", Fraction(-2, 5), "", smoothed_squared),
    Rate("perturbed histogram", "L2 squared", Fraction(-2, 3), "", perturbed_squared),
    Rate("smoothed histogram", "KS", Fraction(-2, 7), "sqrt(log n) ", smoothed_distance),
    Rate("perturbed histogram", "KS", Fraction(-1, 2), "sqrt(log n) ", perturbed_distance),
    Rate("perturbed series", "L2 squared", Fraction(-3, 4), "", series_squared),
    Rate(
        "exponential mechanism",
        "KS",
        Fraction(-1, 3),
        "",
        near_distance,
        tuple(int(n) for n in np.logspace(2, 4, 9)),
        4,
    ),
    Rate(
        "exponential mechanism on series",
        "L2 squared",
        Fraction(-3, 8),
        "",
        near_series_squared,
        tuple(int(n) for n in np.logspace(3, 6, 9)),
        4,
    ),
)


def measure(trials: int) -> Measured:
    """Mean errors at all sizes n, and the slope of their logarithms."""
    lines: list[Line] = []
    for i, rate in enumerate(RATES):
        generator, source = np.random.default_rng(i), SeededSource(i)
        times = max(1, trials // rate.spared)
        errors = [rate.error(n, times, generator, source) for n in rate.sizes]
        slope = np.polyfit(np.log(rate.sizes), np.log(errors), 1)[0]
        lines.append(
            {
                "mechanism": rate.mechanism,
                "distance": rate.distance,
                "paper_slope": rounded(float(rate.slope)),
                "slope": rounded(float(slope)),
                "n": list(rate.sizes),
                "errors": [rounded(error) for error in errors],
                "trials": times,
            }
        )
    return Measured(lines, lambda figure: _draw(lines, figure))


def _draw(lines: list[Line], figure: Any) -> None:
    axes = figure.subplots()
    for i, line in enumerate(lines):
        label = f"{line['mechanism']}, {line['distance']}: {line['slope']:.2f}"
        axes.loglog(line["n"], line["errors"], f"C{i}o-", markersize=3, label=label)
        middle, error = line["n"][4], line["errors"][4]
        fitted = error * (np.array(line["n"]) / middle) ** line["paper_slope"]
        axes.loglog(line["n"], fitted, f"C{i}:", linewidth=1)
    axes.set(xlabel="n (dotted: the paper's power of n)", ylabel="mean error")
    axes.legend(fontsize=7)


def _beside(lines: list[Line]) -> list[Row]:
    return [
        (
            f"{line['mechanism']}, {line['distance']}",
            f"{rate.logarithms}n^({rate.slope})",
            f"{line['slope']:.3f}",
        )
        for rate, line in zip(RATES, lines, strict=True)
    ]


EXPERIMENTS = (
    Experiment(
        "wz-rates",
        "Rates of convergence",
        "WZ 2010, the two tables of section 1.1",
        "Slopes of log error on log n at alpha = 1, for the density 6 x (1 - x). The exponential"
        " mechanisms converge faster here than the paper's bounds, which hold for every density.",
        200,
        measure,
        _beside,
    ),
)
