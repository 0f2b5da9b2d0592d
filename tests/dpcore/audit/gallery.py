"""Wrong mechanisms that an audit must catch, and right ones about which it must be silent.

Each ``Exhibit`` is a claim and the neighbouring inputs on which a mechanism is audited.  The wrong
ones are faults that were made or printed somewhere; where a fault can be put into a release it is,
and runs through the real privacy line, which sees nothing wrong with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from benchmarks.audit import QUERIES, mechanisms, noisy_max, simulated, sparse_vector
from dpcore.accounting.budget import Budget, total
from dpcore.arrays import Floats
from dpcore.audit import Audited, AuditResult, Joint, ReleaseDraws, Simulated, audit_mechanism
from dpcore.audit.neighbours import neighbouring_pairs, survey_pairs
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.base import Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.machines.classifier import Classifier
from dpcore.releases.tables.margins import MarginTables
from dpcore.sampling.source import RandomSource, SeededSource

Generator = np.random.Generator

PURE, APPROXIMATE = Budget.of("1"), Budget.of("1", "0.01")


@dataclass(frozen=True)
class Exhibit:
    """``loss``: the true alpha, at the claimed beta, as far as it is known; ``pairs``: made anew."""

    claim: Budget
    loss: str
    pairs: Callable[[], Sequence[Audited]]
    draws: int = 20_000


# Releases -------------------------------------------------------------------------------------

SEX, OWNS = Categories("sex", ("f", "m")), Categories("owns", ("yes", "no"))
TABLE = Domain((SEX, Categories("age", ("young", "old", "older"))))
LINE = Domain((Grid("x", 0.0, 1.0, 64),))
LABELLED = Domain((Grid("x", 0.0, 1.0, 8), OWNS))


class HalfScaleLaplace(DiscreteLaplace):
    """States its scale and draws with half of it."""

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        honest = DiscreteLaplace(self.size, self.l1_sensitivity, self.scale / 2)
        return honest.draw(statistic, source)


@dataclass(frozen=True)
class HalfScale(Histogram):
    """A histogram with half of the noise that it says."""

    @property
    def mechanism(self) -> DiscreteLaplace:
        return HalfScaleLaplace.within(self.share, self.domain.size, Fraction(2))


@dataclass(frozen=True)
class AddRemove(Histogram):
    """A histogram whose author thinks that a neighbour has one record more or less, not another."""

    @property
    def mechanism(self) -> DiscreteLaplace:
        return DiscreteLaplace.within(self.share, self.domain.size, Fraction(1))


def tables_of(release: Release, few: int = 4, move: str = "") -> list[Audited]:
    """The first few pairs of tables in which the record makes a given move."""
    found = neighbouring_pairs(release.domain, release.rows)
    pairs = [pair for pair in found if pair.description.startswith(move)][:few]
    return [ReleaseDraws(release, pair) for pair in pairs]


def surveys_of(releases: Sequence[Release], combine: Callable[..., Audited]) -> list[Audited]:
    """All pairs of surveys, seen through several releases."""
    surveys = survey_pairs([release.domain for release in releases], releases[0].rows)
    return [combine(tuple(map(ReleaseDraws, releases, survey))) for survey in surveys]


BY_SEX = Histogram("by sex", Domain((SEX,)), 9, PURE)
BY_OWNS = Histogram("by owns", Domain((OWNS,)), 9, PURE)


class SharedNoise(Joint):
    """Joint releases whose noise comes from the same words again: a seed that was not changed."""

    def draw(self, side: int, size: int, source: RandomSource) -> NDArray[np.generic]:
        seed = int(source.words(1)[0] >> np.uint64(1))
        return np.concatenate([p.draw(side, size, SeededSource(seed)) for p in self.parts], axis=1)


def retried() -> list[Audited]:
    """A retry that draws again, and both draws can be seen, for one charge."""
    return [Joint((pair, pair)) for pair in tables_of(BY_SEX)]


# K-norm noise of the thesis -------------------------------------------------------------------


def caratheodory(degree: int, sensitivity: float) -> Audited:
    """Hall (2012), chapter 4: K-norm noise for Fourier coefficients of one record, alpha = 1.

    The body is the convex hull of the curve of coefficients.  The thesis takes 2 for the
    ``sensitivity``; it is m + 1, attained by points 1 / (m + 1) apart.
    """
    frequencies = np.arange(1, degree + 1)

    def run(point: float, size: int, generator: Generator) -> Floats:
        radius = generator.gamma(2 * degree + 1, sensitivity, size)
        body = radius[:, None] * uniform_moments(degree, size, generator)
        moments = np.exp(2j * np.pi * frequencies * point) + body
        # On a grid, so that no digits give anything away.
        return np.round(np.concatenate([moments.real, moments.imag], axis=1), 4)

    return Simulated("K-norm", (0.0, 1 / (degree + 1)), run)


def uniform_moments(degree: int, size: int, generator: Generator) -> NDArray[np.complex128]:
    """(size, degree) uniform on the trigonometric moments of probability measures: exact.

    Moments c_1, ..., c_m correspond to Schur parameters a_j in the unit disc by Levinson's
    recursion, c_j = (known from before) + a_j * prod over i < j of (1 - |a_i|^2), so the uniform law
    has independent a_j with densities proportional to (1 - |a_j|^2)^(2(m - j)).
    """
    moments = np.zeros((size, degree + 1), dtype=complex)
    moments[:, 0] = 1.0
    predictor = np.zeros((size, degree + 1), dtype=complex)
    error = np.ones(size)
    for j in range(1, degree + 1):
        squared = generator.beta(1, 2 * (degree - j) + 1, size)
        schur = np.sqrt(squared) * np.exp(2j * np.pi * generator.random(size))
        past = (predictor[:, 1:j] * moments[:, j - 1 : 0 : -1]).sum(axis=1)
        moments[:, j] = past + schur * error
        updated = predictor.copy()
        updated[:, j] = schur
        updated[:, 1:j] -= schur[:, None] * np.conj(predictor[:, j - 1 : 0 : -1])
        predictor, error = updated, error * (1 - squared)
    return moments[:, 1:]


# Gaussian process, support vector machine -----------------------------------------------------


@cache
def analytic_gaussian(alpha: float, beta: float) -> float:
    """Standard deviation over sensitivity (Balle & Wang 2018)."""

    def excess(sigma: float) -> float:
        upper = special.ndtr(1 / (2 * sigma) - alpha * sigma)
        return upper - math.exp(alpha) * special.ndtr(-1 / (2 * sigma) - alpha * sigma) - beta

    return float(optimize.brentq(excess, 1e-3, 1e4))


def gaussian_process(squared: bool) -> Audited:
    """A kernel density of 5 records with a Gaussian process, at 9 points, (1, 0.01).

    Hall (2012) and HRW (2013) print the covariance s K where it must be s^2 K; here s is
    2.1, so the printed noise is 1.46 times too small.
    """
    width, rows = 0.1, 5
    points = np.linspace(0, 1, 9)
    gram = np.exp(-((points[:, None] - points) ** 2) / (2 * width**2))
    delta = math.sqrt(2) / (rows * math.sqrt(2 * math.pi) * width)
    scale = analytic_gaussian(1.0, 0.01) * delta
    factor = np.linalg.cholesky(gram) * (scale if squared else math.sqrt(scale))

    def run(record: float, size: int, generator: Generator) -> Floats:
        bump = np.exp(-((points - record) ** 2) / (2 * width**2))
        exact = bump / (rows * math.sqrt(2 * math.pi) * width)
        return np.round(exact + generator.normal(size=(size, 9)) @ factor.T, 6)

    return Simulated("Gaussian process", (0.0, 1.0), run)


def free_intercept() -> Audited:
    """The intercept of a support vector machine, unregularised, 51 labels of +1 against 50.

    All records lie at one point, so the minimiser of the hinge loss is w = 0 and b = the majority's
    label.  The noise is that of kappa / (lambda n) with lambda = 1.
    """
    rows, scale = 101, analytic_gaussian(1.0, 0.01) / 101

    def run(positive: int, size: int, generator: Generator) -> Floats:
        majority = 1.0 if 2 * positive > rows else -1.0
        return np.round(majority + scale * generator.normal(size=size), 6)

    return Simulated("intercept", (51, 50), run)


def float_laplace(count: int, size: int, generator: Generator) -> Floats:
    """A count and Laplace noise of scale 1 by inversion, in double precision."""
    signs = np.where(generator.random(size) < 0.5, -1.0, 1.0)
    return count + signs * np.log(1 - generator.random(size))


def fine_laplace(count: int, size: int, generator: Generator) -> Floats:
    """The same with the noise on a grid: nothing is in the digits."""
    return count + np.rint(generator.laplace(size=size) * 2**16) / 2**16


# The two tables -------------------------------------------------------------------------------

WRONG = {
    "Laplace noise of half the stated scale": Exhibit(
        PURE, "2", lambda: tables_of(HalfScale("half", TABLE, 9, PURE))
    ),
    "histogram with the sensitivity of add-remove neighbours": Exhibit(
        PURE, "2", lambda: tables_of(AddRemove("one", TABLE, 9, PURE))
    ),
    "K-norm noise as printed, m = 8": Exhibit(PURE, "4.5", lambda: [caratheodory(8, 2.0)], 60_000),
    "Gaussian process with the covariance as printed": Exhibit(
        APPROXIMATE, "1.65", lambda: [gaussian_process(squared=False)]
    ),
    "support vector machine with a free intercept": Exhibit(
        APPROXIMATE, "infinite", lambda: [free_intercept()], 4_000
    ),
    "Laplace noise in floating point": Exhibit(
        PURE, "infinite", lambda: [Simulated("float", (0, 1), float_laplace)], 4_000
    ),
    "the same noise in two releases": Exhibit(
        total((PURE, PURE)), "infinite", lambda: surveys_of((BY_SEX, BY_OWNS), SharedNoise)
    ),
    "two visible draws for one charge": Exhibit(PURE, "2", retried),
    "sparse vector technique SVT3": Exhibit(
        PURE, "5", lambda: simulated("SVT3", sparse_vector(1.0, 1, True), QUERIES)[4:10], 60_000
    ),
    "one charge for two releases of a survey": Exhibit(
        PURE, "2", lambda: surveys_of((BY_SEX, BY_OWNS), Joint)
    ),
}

RIGHT = {
    "Laplace noise on a grid": Exhibit(
        PURE, "1", lambda: [Simulated("fine", (0, 1), fine_laplace)], 4_000
    ),
    "randomised response": Exhibit(PURE, "1", lambda: mechanisms()["randomised response"], 4_000),
    "noisy max": Exhibit(PURE, "1", lambda: simulated("noisy max", noisy_max(1.0), 5)[3:5], 8_000),
    "sparse vector technique SVT1": Exhibit(
        PURE, "1", lambda: simulated("SVT1", sparse_vector(1.0, 2, False), QUERIES)[5:7], 8_000
    ),
    "histogram": Exhibit(PURE, "1", lambda: tables_of(Histogram("h", TABLE, 9, PURE), 2), 8_000),
    "thresholded histogram": Exhibit(
        PURE, "1", lambda: tables_of(ThresholdedHistogram("t", TABLE, 60, PURE), 2), 8_000
    ),
    "margins": Exhibit(
        PURE, "1", lambda: tables_of(MarginTables("m", TABLE, 9, PURE, ((0,), (1,))), 2), 8_000
    ),
    "Gaussian margins": Exhibit(
        APPROXIMATE,
        "1",
        lambda: tables_of(
            MarginTables("g", TABLE, 9, APPROXIMATE, ((0,), (1,)), "discrete-gaussian"), 2
        ),
        8_000,
    ),
    "binned density": Exhibit(
        PURE, "1", lambda: tables_of(BinnedDensity("b", LINE, 9, PURE, (0.2,)), 2), 8_000
    ),
    "spectral density": Exhibit(
        APPROXIMATE, "1", lambda: tables_of(SpectralDensity("s", LINE, 9, APPROXIMATE, (0.2,)), 1)
    ),
    "classifier": Exhibit(
        APPROXIMATE,
        "1",
        lambda: tables_of(
            Classifier("c", LABELLED, 9, APPROXIMATE, (0.5,), 0.1, 4, (1, -1)), 2, "owns"
        ),
        8_000,
    ),
    "K-norm noise with the true sensitivity, m = 8": Exhibit(
        PURE, "1", lambda: [caratheodory(8, 9.0)], 8_000
    ),
    "Gaussian process": Exhibit(APPROXIMATE, "1", lambda: [gaussian_process(squared=True)], 8_000),
    "two releases for two charges": Exhibit(
        total((PURE, PURE)), "2", lambda: surveys_of((BY_SEX, BY_OWNS), Joint)[:1], 8_000
    ),
}


def audited(exhibit: Exhibit, seed: int, pairs: Sequence[Audited] | None = None) -> AuditResult:
    """One audit of an exhibit, at 95% confidence."""
    return audit_mechanism(
        pairs or exhibit.pairs(), exhibit.claim, exhibit.draws, SeededSource(seed)
    )


def violations(exhibit: Exhibit, repeats: int) -> tuple[int, float]:
    """How often independent audits of a right mechanism fail, and the largest bound."""
    pairs = exhibit.pairs()
    results = [audited(exhibit, 1000 + seed, pairs) for seed in range(repeats)]
    return sum(not r.passed for r in results), max(r.lower_bound for r in results)
