"""Made-up populations of three columns, and a release of every kind over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.domain.tally import Tally
from dpcore.releases.base import Release
from dpcore.releases.counts.count import Count
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.random_histogram import RandomHistogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.parts import DensityOfParts
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.machines.classifier import Classifier
from dpcore.releases.machines.regression import Regression
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.tables.hierarchy import Hierarchy
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.microdata import Microdata
from papers.coefficient_laplace.release import CoefficientDensity
from papers.difference_body.release import BodyDensity
from papers.k_norm.release import GammaDensity

PLACE = Categories("place", tuple(range(40)))
TRADE = Categories("trade", tuple(range(12)))
INCOME = Grid("income", 0.0, 1.0, 256)
REPORTED = Grid("reported", 0.0, 1.0, 256, nullable=True)
"""The income of those who answer: the more the rarer."""
HEAPED = Grid("heaped", 0.0, 1.0, 256, points=(0.0, 1.0))
"""The income, where those who do not say are put down as 0, and a few as 1."""
RICH = Categories("rich", (False, True))
LISTED = Regions(Domain((TRADE, PLACE)), np.flatnonzero(np.arange(12 * 40) % 7))
"""Some places have no leaf under some trades: their records lie outside."""

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
PURE, APPROXIMATE = Budget.of("0.5"), Budget.of("1", "1e-6")


@dataclass(frozen=True)
class Population:
    """``skew``: 0 for places and trades of one size, 1 for Zipf's law; larger is steeper."""

    name: str
    rows: int
    skew: float


POPULATIONS = (
    Population("even", 20_000, 0.0),
    Population("skewed", 5_000, 1.2),
    Population("small", 600, 0.6),
)


def counts(release: type[Release], share: Budget, **rest: object) -> Callable[[int], Release]:
    return lambda rows: release("r", Domain((PLACE, TRADE)), rows, share, **rest)  # type: ignore[arg-type]


def of_weights(name: str) -> Callable[[int], Release]:
    """The same over steps of weight: each record is one of two and a half."""
    return lambda rows: replace(RELEASES[name](rows), adjacency=Adjacency(weighted=True)).weighed(
        Fraction(5, 2)
    )


RELEASES: dict[str, Callable[[int], Release]] = {
    "histogram": counts(Histogram, PURE),
    "thresholded histogram": counts(ThresholdedHistogram, PURE),
    "histogram of occupied cells": counts(ThresholdedHistogram, Budget.of("0.5", "1e-4")),
    "margins": lambda rows: MarginTables(
        "r", Domain((PLACE, TRADE, RICH)), rows, PURE, ((0, 1), (0, 2), (1, 2))
    ),
    "gaussian margins": lambda rows: MarginTables(
        "r",
        Domain((PLACE, TRADE, RICH)),
        rows,
        APPROXIMATE,
        ((0, 1), (0, 2), (1, 2)),
        "discrete-gaussian",
    ),
    "microdata": lambda rows: Microdata(
        "r", Domain((PLACE, TRADE, RICH)), rows, APPROXIMATE, noise="discrete-gaussian"
    ),
    "hierarchy": lambda rows: Hierarchy("r", Domain((TRADE, PLACE, RICH)), rows, PURE, LISTED),
    "gaussian hierarchy": lambda rows: Hierarchy(
        "r", Domain((TRADE, PLACE, RICH)), rows, APPROXIMATE, LISTED, "discrete-gaussian"
    ),
    "count": lambda rows: Count("r", Domain((RICH,)), rows, PURE, counted=(1,)),
    "random histogram": lambda rows: RandomHistogram(
        "r", Domain((RICH,)), rows, Budget.of("0.5", "0", "0.05")
    ),
    "mean": lambda rows: Mean("r", Domain((INCOME,)), rows, PURE),
    "mean by group": lambda rows: RatioMean("r", Domain((TRADE, INCOME)), rows, PURE),
    "quantiles": lambda rows: ColumnQuantiles("r", Domain((REPORTED,)), rows, PURE, QUARTILES),
    "quantiles by group": lambda rows: ColumnQuantiles(
        "r", Domain((TRADE, REPORTED)), rows, PURE, QUARTILES, 1
    ),
    "binned density": lambda rows: BinnedDensity("r", Domain((INCOME,)), rows, PURE, (0.05,)),
    "spectral density": lambda rows: SpectralDensity(
        "r", Domain((INCOME,)), rows, APPROXIMATE, (0.05,)
    ),
    "gamma density": lambda rows: GammaDensity("r", Domain((INCOME,)), rows, PURE, (0.2,)),
    "body density": lambda rows: BodyDensity("r", Domain((INCOME,)), rows, PURE, (0.2,)),
    "coefficient density": lambda rows: CoefficientDensity(
        "r", Domain((INCOME,)), rows, PURE, (0.2,)
    ),
    "density of those with a value": lambda rows: BinnedDensity(
        "r", Domain((REPORTED,)), rows, PURE, (0.05,)
    ),
    "density by group": lambda rows: DensityOfParts(
        "r",
        Domain((TRADE, REPORTED)),
        rows,
        PURE,
        BinnedDensity("r", Domain((REPORTED,)), rows, PURE, (0.05,)),
    ),
    "density beside point masses": lambda rows: DensityOfParts(
        "r",
        Domain((HEAPED,)),
        rows,
        PURE,
        BinnedDensity("r", Domain((HEAPED,)), rows, PURE, (0.05,)),
    ),
    "spectral density of those with a value": lambda rows: SpectralDensity(
        "r", Domain((REPORTED,)), rows, APPROXIMATE, (0.05,)
    ),
    "gamma density of those with a value": lambda rows: GammaDensity(
        "r", Domain((REPORTED,)), rows, PURE, (0.2,)
    ),
    "function of those with a value": lambda rows: SmoothFunction(
        "r", Domain((REPORTED,)), rows, APPROXIMATE, "gaussian", (0.05,), (80,)
    ),
    "function": lambda rows: SmoothFunction(
        "r", Domain((INCOME,)), rows, APPROXIMATE, "gaussian", (0.05,), (80,)
    ),
    "classifier": lambda rows: Classifier(
        "r", Domain((INCOME, RICH)), rows, APPROXIMATE, (0.3,), 0.1, 32, (-1, 1)
    ),
    "regression": lambda rows: Regression(
        "r", Domain((INCOME, TRADE)), rows, APPROXIMATE, (0.3,), 0.1, 32
    ),
}

RELEASES |= {f"weighted {name}": of_weights(name) for name in ("histogram", "margins", "microdata")}


def guessed(name: str) -> Callable[[int], Release]:
    """The same where the number of records is private, and three times what the plan guesses.

    Half of alpha buys counts noise of about the same scale as where a record is replaced.
    """

    def build(rows: int) -> Release:
        release = RELEASES[name](rows // 3)
        share = replace(release.share, alpha=release.share.alpha / 2)
        return replace(release, share=share, adjacency=Adjacency("add-remove"))

    return build


RELEASES |= {
    f"{name}, rows private": guessed(name)
    for name in (
        "histogram",
        "margins",
        "microdata",
        "hierarchy",
        "count",
        "spectral density",
        "function",
        "classifier",
    )
} | {
    "mean, rows private": lambda rows: RatioMean(
        "r", Domain((INCOME,)), rows // 3, PURE, adjacency=Adjacency("add-remove")
    )
}


def tally(population: Population, domain: Domain, seed: int = 1) -> Tally:
    """The tally of one table of records drawn from the population, over the domain's columns."""
    generator = np.random.default_rng(seed)
    place = generator.choice(PLACE.size, population.rows, p=_sizes(PLACE.size, population.skew))
    trade = generator.choice(TRADE.size, population.rows, p=_sizes(TRADE.size, population.skew))
    trade = np.where(generator.random(population.rows) < 0.5, place % TRADE.size, trade)
    income = generator.beta(2 + trade % 3, 6, population.rows)
    rich = (income + generator.normal(0, 0.1, population.rows) > 0.4).astype(np.int64)
    cell = np.minimum((income * INCOME.size).astype(np.int64), INCOME.size - 1)
    silent = generator.random(population.rows) < income
    codes = {
        "place": place,
        "trade": trade,
        "income": cell,
        "reported": np.where(silent, REPORTED.cells, cell),
        "heaped": np.where(silent, HEAPED.cells + (place == 0), cell),
        "rich": rich,
    }
    packed = domain.pack(np.stack([codes[name] for name in domain.names], axis=1))
    cells, number = np.unique(packed, return_counts=True)
    return Tally(domain, cells, number)


def _sizes(number: int, skew: float) -> Floats:
    weights = np.arange(1, number + 1) ** -skew
    return np.asarray(weights / weights.sum())
