"""Every kind of release and mechanism, registered once, with what the contract tests need of it.

A ``Case`` is a release over a domain so small that all of its tables can be listed, together with
the two neighbouring tables that its sensitivity is about.  ``test_contract`` makes the same claims
about every case, or about one of every kind where the axes do not matter; a release or mechanism of
``dpcore`` without a case fails there.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np

import dpcore.mechanisms
import dpcore.releases
import papers
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.domain.series import each_alone, square_root, totals
from dpcore.domain.step_values import StepValues
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import Mechanism
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import ABSENT, Noisy
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.mechanisms.repeated import Repeated
from dpcore.post.records.nested import Nested
from dpcore.post.records.rules import Order, Rule
from dpcore.releases.base import Release
from dpcore.releases.counts.count import Count
from dpcore.releases.counts.found import FoundCategories
from dpcore.releases.counts.found_bounds import FoundBounds
from dpcore.releases.counts.heaping import Heaping
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.random_histogram import RandomHistogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.densities.bandwidth import Bandwidth
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.parts import DensityOfParts
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.densities.tuned import BandwidthRule, TunedDensity
from dpcore.releases.machines.classifier import Classifier
from dpcore.releases.machines.gradients import GradientClassifier
from dpcore.releases.machines.regression import Regression
from dpcore.releases.machines.tuned import TunedMachine
from dpcore.releases.models.design import SIMPLE, SurveyDesign
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.models.rounds import Family
from dpcore.releases.models.terms import ModelTerms, TermGroup
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.mean_curve import MeanCurve
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.criteria import Contradictions, Criterion, Distance, Prediction
from dpcore.releases.tables.hierarchy import Hierarchy
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.microdata import Microdata
from dpcore.releases.tables.quality import RecordQuality
from dpcore.releases.tables.series import SeriesRun
from dpcore.releases.tables.totals import Totals
from dpcore.sampling.source import RandomSource, SeededSource
from papers.coefficient_laplace.release import CoefficientDensity
from papers.difference_body.release import BodyDensity
from papers.k_norm.release import GammaDensity
from papers.listed_function.release import ListedFunction
from papers.minimax_count.release import MinimaxCount
from papers.near_records.release import NearMean, NearRecords, NearSeries
from papers.online_function.release import AskedFunction
from papers.random_proportion.release import RandomCount
from papers.sampled_histogram.release import SampledHistogram
from papers.u_statistic.release import UStatistic

Records = Tally | Sequence[int] | Integers
"""A table, or the cells of its records."""

PURE = Budget.of("1")
BY_WEIGHT: Any = {"adjacency": Adjacency(weighted=True), "step": Fraction(1, 2)}
APPROXIMATE = Budget.of("1", "0.01")
CAREFUL = Budget.of("0.4", "0.01")
"""So much noise that half of it is enough to see differences alone."""
HALVES: Any = {"first_share": Fraction(1, 2)}
"""Both rounds get the same: then an audit sees a fault of either."""


@dataclass(frozen=True)
class Case:
    """What the contract tests need to know of a release.

    ``near`` and ``far``: cells of the records of two neighbouring tables that differ as much as any two
        do; by default all records are in the first cell, and the last one moves to the last cell;
    ``attained``: they differ by at least this share of the stated sensitivity;
    ``company``: records to add to both tables where a threshold would hide them from an audit;
    ``fault``: an audit finds noise whose scale is divided by this;
    ``alone``: the cell of a record that changes as much as any when it is added, by default the last
        of ``far``, and ``alone_attained``: the share that it attains, by default ``attained``;
    ``others``: further records in a table with a unit of several.
    """

    release: Release
    near: tuple[int, ...] = ()
    far: tuple[int, ...] = ()
    attained: float = 1.0
    company: tuple[int, ...] = ()
    fault: int = 2
    alone: int | None = None
    alone_attained: float | None = None
    others: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.near:
            object.__setattr__(self, "near", self.release.rows * (0,))
        if not self.far:
            object.__setattr__(self, "far", (*self.near[:-1], self.release.domain.size - 1))


def grid(name: str, size: int) -> Grid:
    """A fine grid over [0, size]."""
    return Grid(name, 0.0, float(size), size)


def heaping(*values: StepValues) -> Heaping:
    """Of two records."""
    return Heaping("h", Domain(tuple(each.axis for each in values)), 2, APPROXIMATE, values=values)


def tuned(smooth: BinnedDensity, rule: BandwidthRule = "quantiles") -> TunedDensity:
    """The density at a bandwidth that half of its share buys."""
    facts = smooth.name, smooth.domain, smooth.rows, smooth.share
    return TunedDensity(*facts, smooth, Fraction(1, 2), rule)


def by_group(density: Density, of: Domain) -> DensityOfParts:
    return DensityOfParts(density.name, of, density.rows, density.share, density)


def beside_points(density: Density) -> DensityOfParts:
    return by_group(density, density.domain)


IN_STRATA = SurveyDesign(steps=2, usual=1.5, strata=Categories("region", ("N", "S")), weight="w")
"""Weights of at most two steps, in two strata."""


def measured_model(family: Family, share: Budget, design: SurveyDesign = SIMPLE) -> MeasuredModel:
    """A model of some values of x, where a null leaves a record out, and of a response 0 or 1."""
    values = (0, 1, 2)[: 3 if design.members == 1 else 2]
    axes = (Categories("x", values, nullable=True), Categories("y", (0, 1)))
    x = TermGroup((0,), (1,), np.array(values, dtype=float)[:, None])
    one = TermGroup((), (0,), np.ones((1, 1)))
    y = TermGroup((1,), (0,), np.arange(2.0)[:, None])
    scale = (0.5, 0.5) if family == "gaussian" else (0.0, 1.0)
    terms = ModelTerms(axes, ("Intercept", "x"), (one, x), y, scale)
    domain = design.domain(axes)
    return MeasuredModel("m", domain, 2, share, "y ~ x", family, terms, design)


def means_of_groups(family: Family, share: Budget, design: SurveyDesign = SIMPLE) -> MeasuredModel:
    """The means of groups that x names; a null is in none."""
    release = measured_model(family, share, design)
    assert release.terms is not None
    (_, x) = release.terms.groups
    each = replace(x, places=tuple(range(len(x.values))), values=np.eye(len(x.values)))
    names = tuple(f"x{i}" for i in range(len(x.values)))
    return replace(release, terms=replace(release.terms, names=names, groups=(each,)))


PLACE = Categories("place", ("a", "b"), nullable=True)
AGE = Bins("age", (0.0, 5.0, 9.0))
YES = Categories("yes", (False, True))
SINGLE = Domain((YES,))
THREE = Domain((Categories("size", (1, 2, 3)),))
TABLE = Domain((PLACE, AGE))
UNLIKE = Domain(
    (Categories("t", (1, 2, 3, 4)), Categories("u", ("a", "b")), Categories("v", ("c", "d")))
)
STEPS = Domain((grid("x", 5), grid("y", 4)))

EQUAL = Domain(
    (
        *(Grid(name, 0.0, 3.0, 3, integer=True) for name in ("a", "b")),
        Categories("same", ("no", "yes"), compares=("a", "b")),
    )
)
SAME = tuple(Rule(((2, (1,)),), (), (Order(*pair, (0, 1, 2)),)) for pair in ((0, 1), (1, 0)))

CUBE = Domain((Categories("place", ("a", "b")), YES, Categories("size", (1, 2, 3))))
SWITCHES = Domain(tuple(Categories(name, (False, True)) for name in ("on", "hot", "dry")))
FOUR = Domain((*SWITCHES.axes, Categories("old", (False, True))))
TRIO = Domain((Categories("size", (1, 2, 3)), Categories("kind", (1, 2, 3)), YES))
MONTHLY = Domain((Categories("month", (1, 2, 3)), YES))
PAIRS, FOURFOLD = ((0, 1), (0, 2), (1, 2)), (*combinations(range(4), 2), (0, 1, 2, 3))
INSIDE = Domain(CUBE.axes[1:])
GAUSSIAN_PAIR = MarginTables("s", INSIDE, 2, APPROXIMATE, ((0,), (1,)), "discrete-gaussian")
CRITERIA: tuple[Criterion, ...] = (
    Distance("distance of place", 99.0, (("place",),)),
    Contradictions("contradictions", 99.0, (Rule(((0, (1,)),), ((1, (0,)),)),)),
    Prediction("excess error of place", 99.0, "place", ("yes",)),
)
"""Of synthetic records, where one row can move all of them at once; any value is accepted."""
REGIONS = Regions(Domain(CUBE.axes[:2]), np.array([0, 1, 2]))
"""Three leaves of four combinations: records of the other lie outside."""

LINE, SQUARE = Domain((grid("x", 24),)), Domain((grid("x", 6), grid("y", 5)))
EVEN = Domain((grid("x", 6), grid("y", 4)))
FEW = Domain((grid("x", 6),))
TILES = Domain((grid("x", 3), grid("y", 2)))
FEW_WHOLE = Domain((Grid("x", 0.0, 6.0, 6, integer=True),))
MIXED = Domain((FEW_WHOLE.axes[0], YES))
LABELLED, NUMBERED = Domain((grid("x", 4), YES)), Domain((grid("x", 3), grid("y", 3)))
FEW_OF_EACH = Domain((YES, Grid("x", 0.0, 6.0, 6)))
FEW_OR_NULL = Domain((Grid("x", 0.0, 6.0, 6, nullable=True),))
BESIDE_ZERO = Domain((Grid("x", 0.0, 6.0, 6, points=(0.0, 5.5)),))
DAY = Domain(tuple(grid(name, 3) for name in ("h0", "h1", "h2")))
HALF_DAYS = Domain(tuple(Grid(name, 0.0, 2.0, 2, nullable=True) for name in ("h0", "h1")))
WITH_NULLS = Domain((Grid("x", 0.0, 3.0, 3, nullable=True), YES))

CASES: dict[str, Case] = {
    "histogram": Case(Histogram("h", TABLE, 3, PURE)),
    "thresholded histogram": Case(
        ThresholdedHistogram("t", TABLE, 3, PURE), near=(0, 0, 1), company=30 * (1, 5)
    ),
    "random histogram": Case(
        RandomHistogram("r", SINGLE, 5, Budget.of("1", 0, "0.6"), exact_below=1),
        near=(0, 0, 0, 1, 1),
        far=(0, 0, 1, 1, 1),
    ),
    "mean": Case(Mean("m", Domain((grid("x", 3),)), 3, PURE)),
    "mean of private rows": Case(RatioMean("m", Domain((grid("x", 4),)), 3, PURE)),
    "mean by group": Case(
        RatioMean("m", Domain((PLACE, WITH_NULLS.axes[0])), 3, PURE), far=(0, 0, 6)
    ),
    "Gaussian mean": Case(
        Mean("m", Domain((grid("x", 3),)), 3, APPROXIMATE, noise="discrete-gaussian")
    ),
    "Gaussian mean of private rows": Case(
        RatioMean("m", Domain((grid("x", 4),)), 3, APPROXIMATE, noise="discrete-gaussian")
    ),
    "Gaussian mean by group": Case(
        RatioMean(
            "m", Domain((PLACE, WITH_NULLS.axes[0])), 3, APPROXIMATE, noise="discrete-gaussian"
        ),
        far=(0, 0, 6),
    ),
    "smooth mean": Case(
        Mean("s", Domain((grid("x", 3),)), 5, Budget.of("1", "0.01", "0.9"), smooth=True),
        near=(0, 0, 0, 2, 2),
        far=(0, 0, 2, 2, 2),
    ),
    "histogram of occupied cells": Case(
        ThresholdedHistogram("s", TABLE, 3, APPROXIMATE), near=(0, 0, 1), company=30 * (1, 5)
    ),
    "found categories": Case(
        FoundCategories("f", THREE, 3, APPROXIMATE, column="size", categories=("A",)),
        near=(0, 0, 1),
        far=(0, 0, 2),
        company=30 * (1, 2),
    ),
    "found bounds": Case(FoundBounds("b", Domain((replace(AGE, nullable=True),)), 3, PURE)),
    "record quality": Case(RecordQuality("q", CUBE, 2, PURE, criteria=CRITERIA)),
    "margins": Case(MarginTables("m", CUBE, 2, PURE, PAIRS)),
    "gaussian margins": Case(
        MarginTables("g", CUBE, 2, APPROXIMATE, ((0,), (1, 2)), "discrete-gaussian")
    ),
    "microdata": Case(Microdata("d", CUBE, 2, PURE)),
    "gaussian microdata": Case(
        Microdata("d", CUBE, 2, APPROXIMATE, PAIRS[:2], "discrete-gaussian")
    ),
    "optimised margins": Case(MarginTables("o", SWITCHES, 2, PURE, PAIRS, aim="mean"), far=(0, 3)),
    "optimised gaussian margins": Case(
        MarginTables("o", TRIO, 2, CAREFUL, PAIRS, "discrete-gaussian", aim="mean"), far=(0, 3)
    ),
    "optimised microdata": Case(
        Microdata("o", TRIO, 2, CAREFUL, PAIRS, "discrete-gaussian", aim="records"), far=(0, 9)
    ),
    "optimised microdata of pairs and a set of four": Case(
        Microdata("o", FOUR, 2, CAREFUL, FOURFOLD, "discrete-gaussian", aim="records")
    ),
    "weighted margins": Case(
        MarginTables("w", CUBE, 2, APPROXIMATE, PAIRS, "discrete-gaussian", **BY_WEIGHT)
    ),
    "microdata with groups": Case(Microdata("d", CUBE, 2, PURE, nested=(Nested(0, 2, (0, 0, 1)),))),
    # Tables of more cells are multiplied by more before the noise.
    "compressed microdata": Case(CompressedMicrodata("c", UNLIKE, 2, PURE, keep=3, **HALVES)),
    "gaussian compressed microdata": Case(
        CompressedMicrodata("c", UNLIKE, 2, APPROXIMATE, (), "discrete-gaussian", keep=3, **HALVES)
    ),
    "compressed microdata of numbers": Case(
        CompressedMicrodata("n", STEPS, 2, APPROXIMATE, (), "discrete-gaussian", keep=4, **HALVES),
        far=(0, 19),
    ),
    "compressed microdata of columns that may be equal": Case(
        CompressedMicrodata("e", EQUAL, 2, PURE, rules=SAME, keep=2, **HALVES)
    ),
    "hierarchy": Case(Hierarchy("h", CUBE, 2, PURE, REGIONS)),
    "gaussian hierarchy": Case(Hierarchy("g", CUBE, 2, APPROXIMATE, REGIONS, "discrete-gaussian")),
    "hierarchy with totals, and a region where some cannot be": Case(
        replace(
            Hierarchy("t", CUBE, 2, APPROXIMATE, REGIONS, "discrete-gaussian"),
            totals=Totals(1, np.array([1, 1])),
            possible=np.arange(12).reshape(4, 3) != 4,
        )
    ),
    "run of a series": Case(
        SeriesRun("s", MONTHLY, 2, PURE, Histogram("s", SINGLE, 2, PURE), square_root(3), 2),
        near=(2, 2),
        far=(2, 3),
    ),
    "gaussian run of a series of totals": Case(
        SeriesRun("s", CUBE, 2, APPROXIMATE, GAUSSIAN_PAIR, totals(2), 2)
    ),
    "run of a series of records": Case(
        SeriesRun("s", CUBE, 2, PURE, Microdata("s", INSIDE, 2, PURE), each_alone(2), 2),
        near=(6, 6),
        far=(6, 11),
    ),
    "spectral density": Case(SpectralDensity("s", LINE, 2, APPROXIMATE, (0.2,)), attained=0.99),
    "spectral density in two dimensions": Case(
        SpectralDensity("s2", SQUARE, 2, APPROXIMATE, (0.6, 0.8)), attained=0.96
    ),
    "periodic density": Case(
        SpectralDensity("p", LINE, 2, APPROXIMATE, (0.1,), periodic=True),
        far=(0, 12),
        attained=0.999,
    ),
    "periodic density in two dimensions": Case(
        SpectralDensity("p2", EVEN, 2, APPROXIMATE, (0.3, 0.4), periodic=True),
        far=(0, 14),
        attained=0.99,
    ),
    # Over so few cells even the splines of both ends overlap a little.
    "binned density": Case(BinnedDensity("b", LINE, 2, PURE, (0.3,)), attained=0.99),
    "binned density in two dimensions": Case(
        BinnedDensity("b2", SQUARE, 2, PURE, (0.5, 0.6)), attained=0.92
    ),
    "gamma periodic density": Case(
        GammaDensity("k", LINE, 2, PURE, (0.2,), periodic=True), far=(0, 12), attained=0.98
    ),
    "periodic body density": Case(
        BodyDensity("d", LINE, 2, PURE, (0.3,), periodic=True), far=(0, 12), fault=3
    ),
    "periodic perturbed series": Case(
        CoefficientDensity("l", LINE, 2, PURE, (0.05,), 2, periodic=True),
        far=(0, 7),
        attained=0.97,
        alone=1,
    ),
    "gamma density": Case(GammaDensity("k", LINE, 2, PURE, (0.2,)), attained=0.98),
    "body density": Case(BodyDensity("d", LINE, 2, PURE, (0.3,)), fault=3),
    "coefficient density": Case(
        CoefficientDensity("l", LINE, 2, PURE, (0.2,), 2), far=(0, 14), attained=0.98, alone=0
    ),
    "function": Case(
        SmoothFunction("f", LINE, 2, APPROXIMATE, "gaussian", (0.2,), (24,)), attained=0.99
    ),
    "function in two dimensions": Case(
        SmoothFunction("f2", SQUARE, 2, APPROXIMATE, "gaussian", (0.4, 0.5), (8, 7)), attained=0.98
    ),
    "classifier": Case(
        Classifier("c", LABELLED, 2, APPROXIMATE, (0.5,), 4.0, 4, (-1, 1)),
        near=(2, 4),
        far=(2, 5),
        attained=0.985,
        alone_attained=0.98,
    ),
    # A label that flips changes the slope of the logistic loss by 1, where 2 is the most thinkable.
    "logistic classifier": Case(
        Classifier("l", LABELLED, 2, APPROXIMATE, (0.5,), 4.0, 4, (-1, 1), "logistic"),
        near=(4, 4),
        far=(4, 5),
        attained=0.47,
        fault=5,
    ),
    "classifier on a column with nulls": Case(
        Classifier("n", WITH_NULLS, 2, APPROXIMATE, (0.5,), 4.0, 4, (-1, 1)),
        near=(2, 6),
        attained=0.985,
        alone_attained=0.98,
    ),
    "descent": Case(
        GradientClassifier("d", LABELLED, 2, APPROXIMATE, (-1, 1), False, 1.0, 3, 4), fault=3
    ),
    "gradient classifier": Case(
        GradientClassifier("g", LABELLED, 2, APPROXIMATE, (-1, 1), True, None, 2, 2),
        fault=5,
    ),
    "huber regression": Case(
        Regression("r", NUMBERED, 2, APPROXIMATE, (0.5,), 0.5, 4, 0.1),
        near=(3, 3),
        far=(3, 5),
        attained=0.98,
    ),
    "count": Case(Count("c", LABELLED, 3, PURE, (1, 3)), far=(0, 0, 1)),
    "minimax count": Case(
        MinimaxCount("c", Domain((PLACE,)), 9, PURE, (0,)), near=9 * (1,), far=(0, *8 * (1,))
    ),
    "approximate minimax count": Case(
        MinimaxCount("c", Domain((PLACE,)), 6, APPROXIMATE, (0,)), near=6 * (1,), far=(0, *5 * (1,))
    ),
    "random count": Case(
        RandomCount("r", SINGLE, 5, Budget.of("1", 0, "0.4"), (1,)),
        near=(0, 0, 0, 1, 1),
        far=(0, 0, 1, 1, 1),
    ),
    "smoothed histogram": Case(
        SampledHistogram("s", THREE, 2, PURE, 2, "smoothed-histogram"), near=(0, 1), far=(1, 2)
    ),
    "dirichlet-multinomial": Case(
        SampledHistogram("d", THREE, 2, PURE, 2, "dirichlet-multinomial"), near=(0, 1), far=(1, 2)
    ),
    "near records": Case(NearRecords("n", Domain((AGE,)), 2, Budget.of("2"), 2), fault=4),
    "near series": Case(NearSeries("n", FEW, 2, Budget.of("2"), 1, 2), attained=0.88, fault=6),
    "near mean": Case(NearMean("n", FEW, 2, Budget.of("2")), fault=4),
    "asked function": Case(
        AskedFunction(
            "a", LINE, 2, APPROXIMATE, "gaussian", (0.2,), ((0.0,), (3.0,), (6.0,), (9.0,))
        ),
        attained=0.6,
    ),
    "listed function": Case(
        ListedFunction("l", FEW, 2, PURE, ("low", "high"), ((1, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1)))
    ),
    "u-statistic": Case(
        UStatistic("u", Domain((grid("x", 3),)), 3, PURE, kernel="mean-difference")
    ),
    "smooth u-statistic": Case(
        UStatistic("u", Domain((grid("x", 3),)), 5, Budget.of("1", "0.01", "0.9"), smooth=True)
    ),
    # Neither quartile alone may spend more than half of alpha, and no table makes both spend it.
    "bandwidth": Case(
        Bandwidth("w", Domain((grid("x", 4),)), 4, PURE, smallest=0.1),
        near=(0, 1, 1, 1),
        far=(1, 1, 1, 3),
        fault=5,
    ),
    "density at a private bandwidth": Case(
        tuned(BinnedDensity("d", FEW, 3, PURE, (0.3,))), fault=4
    ),
    "density at the bandwidth of least error": Case(
        tuned(BinnedDensity("d", FEW, 3, PURE, (0.3,)), "error"), fault=4
    ),
    "density at private bandwidths of two columns": Case(
        tuned(BinnedDensity("d2", TILES, 3, PURE, (0.5, 0.5))), fault=4
    ),
    "function at a private bandwidth": Case(
        TunedDensity(
            *("f", FEW, 3, APPROXIMATE),
            SmoothFunction("f", FEW, 3, APPROXIMATE, "gaussian", (0.3,), (6,)),
            Fraction(1, 3),
        ),
        fault=4,
    ),
    "classifier at a private regularisation": Case(
        TunedMachine(
            *("c", LABELLED, 2, APPROXIMATE),
            Classifier("c", LABELLED, 2, APPROXIMATE, (0.5,), 0.5, 4, signs=(-1, 1)),
            Fraction(1, 2),
            (0.25, 1.0),
        ),
        near=(1, 1),
        far=(1, 0),
        fault=4,
    ),
    # A number at both its bounds, with the ends of an odd number of columns: the lemma's equality.
    "moments": Case(Moments("m", FEW_WHOLE, 2, APPROXIMATE), attained=0.99),
    "moments of several columns": Case(Moments("m", MIXED, 2, APPROXIMATE), attained=0.8),
    "linear model": Case(
        measured_model("gaussian", APPROXIMATE), far=(0, 5), attained=0.99, fault=5
    ),
    "logistic model": Case(
        measured_model("binomial", APPROXIMATE), far=(0, 5), attained=0.9, fault=5
    ),
    "poisson model": Case(
        measured_model("poisson", APPROXIMATE), far=(0, 5), attained=0.99, fault=5
    ),
    # One record leaves a group for another.
    "means of groups": Case(
        means_of_groups("gaussian", APPROXIMATE), far=(0, 5), attained=0.7, fault=5
    ),
    "heaping": Case(
        heaping(
            StepValues.of("x", (4, 5), Fraction(1), False),
            StepValues.of("y", (9, 10), Fraction(1), False),
        )
    ),
    # A blank is in no table, and zero in one alone.
    "heaping with blanks and parts": Case(
        heaping(StepValues.of("x", (0, 1), Fraction(1, 2), True)), near=(1, 1), far=(1, 2), alone=2
    ),
    # From two records at one end to two at the other.
    "linear model of units": Case(
        measured_model("gaussian", APPROXIMATE, SurveyDesign(members=2, unit="household")), fault=5
    ),
    "logistic model with weights, in strata": Case(
        measured_model("binomial", APPROXIMATE, IN_STRATA), fault=5
    ),
    "poisson model in clusters": Case(
        measured_model(
            "poisson", APPROXIMATE, SurveyDesign(clusters=Categories("place", ("a", "b")))
        ),
        fault=5,
    ),
    "mean curve": Case(MeanCurve("c", DAY, 2, APPROXIMATE, times=(0, 1, 3))),
    # The longest curve goes up in two steps; its mirror image goes down.
    "mean curve with a largest step": Case(
        MeanCurve("c", DAY, 2, APPROXIMATE, times=(0, 1, 2), step_at_most=0.5),
        near=(5, 5),
        far=(5, 21),
        alone=5,
    ),
    "mean curve by group, with gaps": Case(
        MeanCurve("c", Domain((YES, *HALF_DAYS.axes)), 2, APPROXIMATE, times=(0, 1)),
        near=(0, 0),
        far=(0, 4),
        alone=4,
    ),
    # A record leaves a group for another: two densities change.
    "density by group": Case(
        by_group(BinnedDensity("d", FEW, 2, PURE, (0.3,)), FEW_OF_EACH), attained=0.98
    ),
    "spectral density by group, wide": Case(
        by_group(SpectralDensity("s", FEW, 2, APPROXIMATE, (0.9,)), FEW_OF_EACH), attained=0.98
    ),
    # A record leaves a point mass for the grid: its count moves, and the density.
    "density beside point masses": Case(
        beside_points(BinnedDensity("d", BESIDE_ZERO, 2, PURE, (0.3,))), far=(0, 5), attained=0.98
    ),
    "spectral density beside point masses, wide": Case(
        beside_points(SpectralDensity("s", BESIDE_ZERO, 2, APPROXIMATE, (0.9,))),
        far=(0, 6),
        attained=0.8,
    ),
    # One without a value has no part of a density: the last cell of the grid is null.
    "density of those with a value": Case(
        BinnedDensity("d", FEW_OR_NULL, 2, PURE, (0.3,)), far=(0, 5), attained=0.98
    ),
    "gamma density of those with a value, wide": Case(
        GammaDensity("g", FEW_OR_NULL, 2, PURE, (0.9,)), near=(0, 6), far=(0, 0), attained=0.8
    ),
    "median by group": Case(
        ColumnQuantiles("q", Domain((PLACE, *LINE.axes)), 2, PURE, (Fraction(1, 2),), by=1),
        near=(0, 1),
        far=(1, 23),
        company=12 * (0, 23, 30, 53),
        others=(1,),
    ),
    # From one group to another: the medians of both move.
    "median by group of those with a value": Case(
        ColumnQuantiles(
            "q",
            Domain((YES, replace(LINE.axes[0], nullable=True))),
            2,
            PURE,
            (Fraction(1, 2),),
            by=1,
        ),
        near=(0, 1),
        far=(1, 48),
        company=12 * (0, 23) + 14 * (25,) + 8 * (48,),
        fault=4,
        alone=23,
        others=(1,),
    ),
    "quantiles": Case(
        ColumnQuantiles("q", LINE, 2, PURE, (Fraction(1, 2),)),
        near=(0, 1),
        far=(1, 23),
        others=(1,),
    ),
}


def concrete_releases() -> set[type]:
    """All classes of releases in dpcore and the papers' package that can be made."""
    _import_all(dpcore.releases)
    _import_all(papers)
    found, waiting = set(), [Release]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if not inspect.isabstract(kind) and kind.__module__.startswith(("dpcore.", "papers.")):
            found.add(kind)
    return found


def concrete_mechanisms() -> set[type]:
    """All classes in dpcore.mechanisms and the papers' package that draw."""
    return {
        kind
        for module in [*_import_all(dpcore.mechanisms), *_import_all(papers)]
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and issubclass(kind, Mechanism)
        and not inspect.isabstract(kind)
        and kind is not Repeated
    }


def _import_all(package: object) -> list[object]:
    path, name = package.__path__, package.__name__  # type: ignore[attr-defined]
    found = [m.name for m in pkgutil.walk_packages(path, f"{name}.")]
    return [import_module(m) for m in found if not m.split(".")[-1].startswith(("test_", "conf"))]


def tally_of(domain: Domain, records: Records) -> Tally:
    """The tally of records that are given by their cells; a tally is its own."""
    if isinstance(records, Tally):
        return records
    cells, counts = np.unique(np.asarray(records, dtype=np.int64), return_counts=True)
    return Tally(domain, cells, counts.astype(np.int64))


@cache
def exact_vector(release: Release, records: tuple[int, ...]) -> Integers:
    """The opened statistic of a table, one value for every public cell."""
    return opened(release, records)


def opened(release: Release, records: Records) -> Integers:
    """The statistic that only the privacy line may open, one value for every public cell."""
    values, cells = release.statistic(tally_of(release.domain, records))._statistic
    if cells is None:
        return values
    of_cells = isinstance(release.mechanism, GaussianRounds)
    size = release.domain.size if of_cells else release.mechanism.size
    vector = np.zeros(size, dtype=np.int64)
    vector[cells] = values
    return vector


def draws(release: Release, records: Records, times: int) -> Iterator[Noisy]:
    """Draws across the privacy line from the seeds 0, 1, ..., one after the other."""
    exact = release.statistic(tally_of(release.domain, records))
    for seed in range(times):
        yield perturb(exact, release.mechanism, release.share, SeededSource(seed))


def drawn(release: Release, records: Records, seed: int = 1) -> Noisy:
    """One draw across the privacy line."""
    exact = release.statistic(tally_of(release.domain, records))
    return perturb(exact, release.mechanism, release.share, SeededSource(seed))


def families(release: Release) -> Iterator[Integers]:
    """Statistics of tables that differ in one record, (domain size, statistic size), all of them.

    Each family shares all records but one; the last one is in every cell in turn.
    """
    cells = range(release.domain.size)
    for shared in combinations_with_replacement(cells, release.rows - 1):
        yield np.stack([exact_vector(release, tuple(sorted((*shared, c)))) for c in cells])


def one_of_each(fact: Callable[[Release], object]) -> dict[str, Case]:
    """The cases of which no earlier one has the same fact."""
    first = {fact(case.release): name for name, case in reversed(CASES.items())}
    return {name: CASES[name] for name in sorted(first.values(), key=list(CASES).index)}


def kind_of(release: Release) -> object:
    """What computes the statistic, and what adds the noise."""
    return type(release), type(release.mechanism)


def law_of(release: Release) -> object:
    """What draws, and the form of the event that is recorded of it."""
    event = release.mechanism.event.to_dict()
    return type(release.mechanism), event.get("noise"), event.get("choice"), frozenset(event)


KINDS = one_of_each(kind_of)
"""A case of every kind with every mechanism of it: for claims that do not depend on the axes."""

LAWS = one_of_each(law_of)
"""A case of every law of noise: for claims about mechanisms and events alone."""


RELATIONS = (Adjacency("add-remove"), Adjacency("add-remove", 2), Adjacency("replace-one", 2))
"""Neighbours other than those that the cases are stated for: the rows are private."""


def under(case: Case, adjacency: Adjacency) -> Case:
    """The same claims for other neighbours: a unit of records is in one table, or another's instead.

    Raises ``ValueError`` where the release does not serve them.
    """
    weighted = case.release.adjacency.weighted
    release = replace(case.release, adjacency=replace(adjacency, weighted=weighted))
    shared = tuple((Counter(case.near) & Counter(case.far)).elements()) + case.others
    (gone,) = Counter(case.near) - Counter(case.far)
    (come,) = Counter(case.far) - Counter(case.near)
    if adjacency.relation == "replace-one":
        near, far = (shared + adjacency.most * (cell,) for cell in (gone, come))
        return replace(case, release=release, near=near, far=far)
    alone = come if case.alone is None else case.alone
    attained = case.attained if case.alone_attained is None else case.alone_attained
    near, far = shared, shared + adjacency.most * (alone,)
    return replace(case, release=release, near=near, far=far, attained=attained)


def units(release: Release) -> Iterator[tuple[Integers, Integers]]:
    """Neighbours of different sizes: statistics of tables, and of neighbours of all of them.

    (tables, size) and (neighbours, size).  All share a few records; the rest of each is one unit, of
    no record up to the most that it may have; units of several are in some cells only.
    """
    adjacency, cells = release.adjacency, range(release.domain.size)
    few = cells if adjacency.most == 1 else [*cells[:: max(1, len(cells) // 6)], cells[-1]]
    for size in range(release.rows if adjacency.most == 1 else 2):
        for shared in combinations_with_replacement(few, size):
            family = np.stack(
                [
                    exact_vector(release, tuple(sorted((*shared, *unit))))
                    for most in range(adjacency.most + 1)
                    for unit in combinations_with_replacement(few, most)
                ]
            )
            yield family, family[:1] if adjacency.relation == "add-remove" else family


def repeated_draws(
    release: Release,
    records: Records,
    times: int,
    source: RandomSource,
    mechanism: Mechanism | None = None,
    share: Budget | None = None,
) -> Floats:
    """(times, size) independent draws across the privacy line; absent cells are NaN.

    ``test_draws`` holds them against single draws.
    """
    mechanism = mechanism or release.mechanism
    repeated = Repeated.of(mechanism, times)
    exact = release.statistic(tally_of(release.domain, records))
    noisy = perturb(exact, repeated, share or release.share, source)
    if noisy.cells is None:
        values = np.where(noisy.values == ABSENT, np.nan, noisy.values)
        return values.reshape(times, -1)
    result = np.full(mechanism.size * times, np.nan)
    result[noisy.cells] = noisy.values
    return result.reshape(times, -1)
