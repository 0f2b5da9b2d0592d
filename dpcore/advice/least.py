"""The error of a release, and the smallest error that its privacy promise allows.

    quantity                              least among                            source
    a count, a mean, a cell               all mechanisms of this alpha           count_limits
    all cells of a table                  all mechanisms of this alpha           count_limits
    an occupied cell above a threshold    all mechanisms of this alpha           count_limits
    all cells of margins                  noise of this law on linear queries    margin_limits
    a density                             all estimators, private or not         a rate only

Each is the smallest worst case over all tables that fit the plan.  Nothing is stated if we know no
bound with explicit constants: for gamma, quantiles, kernel machines, and for beta except with margins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

from dpcore.accounting.budget import Budget
from dpcore.advice.cell_noise import alike, cell_variances
from dpcore.advice.count_limits import (
    count_risk,
    sparse_risk,
    sparse_table_risk,
    table_risk,
    uniform_risk,
)
from dpcore.advice.margin_limits import least_total
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace, ThresholdedLaplace
from dpcore.mechanisms.laplace import LaplaceNoise
from dpcore.releases.base import Release
from dpcore.releases.counts.count import Count
from dpcore.releases.counts.found_bounds import FoundBounds
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.densities.density import Density
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.tables.fitted import FittedTables

MOST_KINDS = 1000
"""With more kinds of tables than this, the bound for margins is not computed."""

LARGE = Fraction(10**8)
"""A squared sensitivity so large that the discrete Gaussian is as good as the continuous one."""


@dataclass(frozen=True)
class Least:
    """The error of a release in one quantity, and the smallest error in the class ``among``.

    ``least`` is None if only the rate is known.  ``on_every_table``: the error that any mechanism of
    the class has on every table, if its worst case is no larger than ``value``.
    """

    quantity: str
    value: float
    least: float | None
    among: str
    on_every_table: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.least if self.least else None


def least_errors(release: Release) -> list[Least]:
    """All known lower bounds for the release that are more than zero."""
    return [each for each in lower_bounds(release) if each.least is None or each.least > 0]


@singledispatch
def lower_bounds(release: Release) -> list[Least]:
    """All known lower bounds; a package that adds a kind may register a function here."""
    return []


@lower_bounds.register
def _(release: FoundBounds) -> list[Least]:
    """None is stated, because the table only serves to find bounds."""
    return []


@lower_bounds.register
def _(release: Density) -> list[Least]:
    stated = release.expected_error()[0]
    return [Least(stated.quantity, stated.value, None, "only a rate: the rate without privacy")]


def _alpha(release: Release) -> tuple[float, str]:
    """The alpha of the noise, and the name of the class of all mechanisms with this alpha."""
    noise = release.mechanism
    assert isinstance(noise, LaplaceNoise)
    alpha = float(noise.l1_sensitivity / noise.scale)
    return alpha, f"all mechanisms of alpha {alpha:.4g}"


@lower_bounds.register
def _(release: Count) -> list[Least]:
    if not isinstance(release.mechanism, DiscreteLaplace):
        return []
    stated, (alpha, among) = release.expected_error()[0], _alpha(release)
    rows, most = release.most_rows, release.adjacency.most
    least = count_risk(alpha, rows, release.loss, most)
    everywhere = uniform_risk(alpha, rows, stated.value, release.loss, most)
    return [Least(stated.quantity, stated.value, least, among, everywhere)]


@lower_bounds.register
def _(release: Mean) -> list[Least]:
    """The bound for a mean: if all records are at the two ends of the range, the mean is a count."""
    if not isinstance(release.mechanism, DiscreteLaplace):
        return []
    stated, (alpha, among) = release.expected_error()[0], _alpha(release)
    one = stated.value / release.mechanism.stddev * float(release.mechanism.l1_sensitivity)
    least = one * math.sqrt(count_risk(alpha, release.rows, "squared"))
    everywhere = uniform_risk(alpha, release.rows, (stated.value / one) ** 2, "squared")
    return [Least(stated.quantity, stated.value, least, among, one * math.sqrt(everywhere))]


@lower_bounds.register
def _(release: ThresholdedHistogram) -> list[Least]:
    if not isinstance(release.mechanism, ThresholdedLaplace):
        return []
    stated = {error.quantity: error.value for error in release.expected_error()}
    (alpha, among), most = _alpha(release), release.adjacency.most
    step, cells, rows = float(release.step), release.domain.size, release.most_rows
    replaced = release.adjacency.relation == "replace-one"
    if release.occupied is None:
        sparse = "expected L1 error per occupied cell, at most"
        risk = sparse_risk(alpha, cells, rows, replaced, most)
        return [Least(sparse, stated[sparse], step * risk, among)]
    at_most = "expected L1 error of the table, at most"
    known = sparse_table_risk(alpha, cells, rows, replaced, most, release.occupied)
    among = f"{among}, for at most {release.occupied:,} occupied cells"
    return [Least(at_most, stated[at_most], step * known, among)]


@lower_bounds.register
def _(release: Histogram) -> list[Least]:
    if not isinstance(release.mechanism, DiscreteLaplace):
        return []
    stated = {error.quantity: error.value for error in release.expected_error()}
    (alpha, among), most = _alpha(release), release.adjacency.most
    step, cells, rows = float(release.step), release.domain.size, release.most_rows
    replaced = release.adjacency.relation == "replace-one"
    one, table = f"standard error of a {release.unit.number}", "expected L1 error of the table"
    squared = count_risk(alpha, rows, "squared", most) if cells > 1 or not replaced else 0.0
    whole_risk = table_risk(alpha, cells, rows, replaced, most)
    everywhere = of_cell = 0.0
    if squared:
        everywhere = uniform_risk(alpha, rows, (stated[one] / step) ** 2, "squared", most)
        of_cell = uniform_risk(alpha, rows, stated[table] / step / cells, most=most)
    return [
        Least(one, stated[one], step * math.sqrt(squared), among, step * math.sqrt(everywhere)),
        Least(table, stated[table], step * whole_risk, among, step * cells * of_cell),
    ]


@lower_bounds.register
def _(release: FittedTables) -> list[Least]:
    shape, sets = release.domain.shape, release.tables
    groups = alike(release, sets)
    if len(groups) > MOST_KINDS:
        return []
    unit = _unit_variance(release.share, release.noise)
    least = least_total(shape, sets, unit, release.adjacency)
    if least is None:
        return []
    variance = cell_variances(release)
    total = sum(
        len(group) * math.prod(shape[a] for a in group[0]) * variance(group[0]) for group in groups
    )
    quantity = f"root mean square error of a {release.unit.number}"
    gaussian = release.noise == "discrete-gaussian"
    return [
        Least(
            quantity,
            math.sqrt(total / release.measurement.cells),
            math.sqrt(least / release.measurement.cells) * float(release.step),
            f"{'Gaussian' if gaussian else 'Laplace'} noise on linear queries"
            + " (a loose bound)" * (not gaussian),
        )
    ]


def _unit_variance(share: Budget, noise: str) -> float:
    """The variance of the noise per unit of squared sensitivity; no integer sensitivity has less.

    For a discrete Gaussian two ratios are smallest in a limit: (parameter / squared sensitivity) as the
    sensitivity grows, and (variance / parameter) as the parameter shrinks.
    """
    if noise == "discrete-gaussian":
        parameter = DiscreteGaussian.within(share, 1, LARGE).variance / LARGE
        return DiscreteGaussian(1, Fraction(1), parameter).stddev ** 2
    return DiscreteLaplace.within(share, 1, Fraction(1)).stddev ** 2
