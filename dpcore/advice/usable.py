"""Whether the results of a release will be usable: their noise relative to what readers look for.

From public values alone:

    tables       the share of records that noise puts into wrong cells (total variation);
                 where cells are merged, in tables of a dozen groups
    records      the same share in the pairs that they follow, after a model of all tables has made pairs
                 more accurate (``modelled``), but at least that of the one-way tables as measured:
                 if these are pure noise, a model cannot help
    a mean       its standard error, in typical standard deviations of such a column, at a typical
                 position between its bounds; for a curve, the average over its points
    densities    half the whole error, which bounds the same share
    a model      the privacy errors of coefficients, relative to their sampling errors

A standard deviation is private.  If nothing is assumed about a column, a twentieth of the range of its
bounds is used instead: a column that fills its bounds is more accurate than this.  Up to ``GOOD``
readers hardly notice the noise; beyond ``ROUGH`` they see little else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import singledispatch
from itertools import combinations
from statistics import fmean

import numpy as np

from dpcore.advice.cell_noise import Dense, alike, cell_variances
from dpcore.advice.modelled import ModelledTables, some_of
from dpcore.advice.models import expected_model
from dpcore.advice.typical import typical_shares
from dpcore.arrays import Floats
from dpcore.domain.axes import MOST_EXAMINED, Axis, Grid, in_order
from dpcore.domain.cell_values import ends_of
from dpcore.releases.abilities import EstimatesDensity
from dpcore.releases.base import Release
from dpcore.releases.counts.heaping import Heaping
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.random_histogram import RandomHistogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.densities.tuned import TunedDensity
from dpcore.releases.models.by_period import EstimatesRun
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.mean_curve import MeanCurve
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.fitted import FittedTables
from dpcore.releases.tables.microdata import Microdata
from dpcore.releases.tables.series import SeriesRun

GOOD, ROUGH = 0.05, 0.25

READ = 12
"""The number of groups that readers look at in a wide column."""

NARROW = 20
"""The range between the bounds, in standard deviations."""

VERDICTS = ("not usable", "rough", "good")


Records = Microdata | CompressedMicrodata
"""Releases whose tables are modelled together before records are drawn."""


def verdict(error: float) -> str:
    """Whether a relative error is good, rough or not usable."""
    return VERDICTS[(error <= ROUGH) + (error <= GOOD)]


Shares = Mapping[str, Floats]
"""For each column, the assumed share of each cell (cells,)."""


@singledispatch
def read_axes(release: Release) -> tuple[Axis, ...]:
    """The axes for which this module needs ``shares``; for a model, those of one record of a unit."""
    return release.domain.axes


@read_axes.register
def _(release: MeasuredModel) -> tuple[Axis, ...]:
    return release.domain.axes if release.terms is None else release.terms.axes


@singledispatch
def relative_error(release: Release, shares: Shares | None = None) -> float | None:
    """The error, or None if its scale is unknown; ``shares``: by default those typical of numbers."""
    return error_of_numbers(release)


@relative_error.register
def _(release: EstimatesRun, shares: Shares | None = None) -> float | None:
    return relative_error(release.inner, shares)


@relative_error.register
def _(release: MeasuredModel, shares: Shares | None = None) -> float:
    """``GOOD`` times the largest ratio of privacy to sampling error of a coefficient, drawn for the
    assumed shares.  For means by group it is the median ratio.  The constant is left out.

    If noise hides most coefficients, the error is infinite; if it hides some, or half of the means, the
    model is at best rough.
    """
    ratios = _ratios(release, shares or {})
    if ratios is None:
        ratio = math.sqrt(max(release.width_ratio**2 - 1, 0.0))
    else:
        known = np.sort(ratios[np.isfinite(ratios)])
        if 2 * len(known) < len(ratios):
            ratio = math.inf
        elif release.groups > 1 and 2 * len(known) > len(ratios):
            ratio = float(np.sort(ratios)[len(ratios) // 2])
        else:
            ratio = float(known[-1])
            if len(known) < len(ratios):
                ratio = max(ratio, math.nextafter(1.0, 2.0))
    return GOOD * ratio


def _ratios(release: MeasuredModel, shares: Shares) -> Floats | None:
    """The ratio of privacy to sampling error of each coefficient but the constant; infinite if hidden.

    None if nothing is assumed about a column.
    """
    assert release.terms is not None
    if not all(axis.name in shares for axis in release.terms.axes):
        return None
    found, kept = expected_model(release, shares), _but_constant(release)
    privacy, sampling = np.diag(found.privacy)[kept], np.diag(found.sampling)[kept]
    return np.where(found.hidden[kept], math.inf, np.sqrt(privacy / sampling))


def _but_constant(release: MeasuredModel) -> list[int]:
    assert release.terms is not None
    size = release.terms.size
    return [i for i in range(size) if size == 1 or i != release.terms.constant]


@singledispatch
def error_scales(release: Release) -> bool:
    """Whether a relative error without hidden terms is in proportion to the noise."""
    return False


@error_scales.register
def _(release: MeasuredModel) -> bool:
    return release.groups == 1  # for groups, noise may hide their sizes


@singledispatch
def hidden_terms(release: Release, shares: Shares | None) -> list[str]:
    """The terms of a measured model that noise is expected to hide; empty for other releases."""
    return []


@hidden_terms.register
def _(release: EstimatesRun, shares: Shares | None) -> list[str]:
    return hidden_terms(release.inner, shares)


@hidden_terms.register
def _(release: MeasuredModel, shares: Shares | None) -> list[str]:
    ratios = None if release.groups > 1 else _ratios(release, shares or {})
    if ratios is None:
        return []
    assert release.terms is not None
    names = [release.terms.names[i] for i in _but_constant(release)]
    return [name for name, each in zip(names, ratios, strict=True) if not math.isfinite(each)]


@relative_error.register
def _(release: Mean, shares: Shares | None = None) -> float | None:
    found = _supposed_mean(release.grid, shares or {})
    return release.expected_error()[0].value / found[1] if found else error_of_numbers(release)


@relative_error.register
def _(release: RatioMean, shares: Shares | None = None) -> float | None:
    """The error of a mean, which is larger if the mean is near a bound."""
    found = _supposed_mean(release.grid, shares or {})
    if found is None:
        return error_of_numbers(release)
    away, deviation = found
    error, at_bound, *_ = (each.value for each in release.expected_error())
    return math.hypot(error, away * math.sqrt(max(at_bound**2 - error**2, 0.0))) / deviation


def _supposed_mean(grid: Grid, shares: Shares) -> tuple[float, float] | None:
    """Where the mean of a column lies, from 0 in the middle to 1 at a bound, and the standard deviation.

    None if nothing is assumed about the column.
    """
    if grid.name not in shares:
        return None
    grid = replace(grid, cells=min(grid.cells, MOST_EXAMINED))  # the grid that the shares describe
    edges = grid.edge(np.arange(grid.cells + 1)).astype(np.float64)
    numbers = np.r_[(edges[1:] + edges[:-1]) / 2, grid.points]
    known = shares[grid.name][: len(numbers)] / shares[grid.name][: len(numbers)].sum()
    mean = float(known @ numbers)
    deviation = math.sqrt(float(known @ (numbers - mean) ** 2))
    away = abs(2 * mean - edges[0] - edges[-1]) / (edges[-1] - edges[0])
    usual = supposed_deviation(grid)
    if away > 0.5:  # for errors of tables, amounts near zero are assumed to spread more
        deviation = min(deviation, usual)
    return away, deviation or usual  # zero if one cell has all records


@relative_error.register
def _(release: CompressedMicrodata, shares: Shares | None = None) -> float:
    """The error if wide columns have ``READ`` groups: the real number of groups depends on the noise."""
    with suppress(ValueError):  # a plan may require more groups
        release = replace(release, keep=READ, categories=READ)
    return _of_records(release, shares)


@relative_error.register(Microdata)
def _of_records(release: Records, shares: Shares | None = None) -> float:
    """The mean error over pairs of columns, or over the drawn tables if none is a pair."""
    expected = ModelledTables(release, _or_typical(release, shares))
    errors = [expected.moved(names) or 0.0 for names in _some_tables(release)]
    measured = release.as_measured(None).release
    alone = [error_as_measured(measured, [name]) or 0.0 for name in release.domain.names]
    return max(float(np.mean(errors)), float(np.mean(alone)))


@singledispatch
def graded_distances(
    release: Release, shares: Shares | None = None, tables: Sequence[Sequence[str]] = ()
) -> list[tuple[float, float]]:
    """For ``tables``, by default some that represent all: the distance by which a bundle grades them,
    and the share of records outside the largest cell.  Empty if no model of all tables is fitted."""
    return []


@graded_distances.register(Microdata)
@graded_distances.register(CompressedMicrodata)
def _(
    release: Records, shares: Shares | None = None, tables: Sequence[Sequence[str]] = ()
) -> list[tuple[float, float]]:
    expected = ModelledTables(release, _or_typical(release, shares))
    tables = tables or _some_tables(release)
    return [(expected.apart(names) or 0.0, expected.outside(names)) for names in tables]


def _some_tables(release: Records) -> list[list[str]]:
    """The columns of some of the drawn pairs, or of the drawn tables if none is a pair."""
    names = release.domain.names
    tables = [attrs for attrs in release.tables if len(attrs) == 2] or release.tables
    return [[names[a] for a in attrs] for attrs in some_of(tables)]


def _or_typical(release: Release, shares: Shares | None) -> Shares:
    axes = release.domain.axes
    return shares or {axis.name: typical_shares(axis, "around") for axis in axes}


@singledispatch
def error_of_numbers(release: Release) -> float | None:
    """The relative error of a release if nothing is assumed about its columns; None if unknown.

    A package that adds a kind registers a function here.
    """
    return None


@error_of_numbers.register
def _(release: Histogram) -> float | None:
    return table_error(release, release.domain.names)


@error_of_numbers.register(ThresholdedHistogram)
@error_of_numbers.register(RandomHistogram)
def _(release: ThresholdedHistogram | RandomHistogram) -> None:
    """The error is unknown, because empty cells have no noise."""


@error_of_numbers.register
def _(release: FittedTables) -> float:
    pairs = [attrs for attrs in release.tables if len(attrs) == 2]
    some, names = some_of(alike(release, pairs or release.tables)), release.domain.names
    errors = [table_error(release, [names[a] for a in group[0]]) or 0.0 for group in some]
    return float(np.average(errors, weights=[len(group) for group in some]))


@error_of_numbers.register
def _(release: SeriesRun) -> float:
    """The error of the tables of the newest period."""
    error = release.expected_error()[0].value
    cells = [domain.size for domain in release.tables.domains]
    return float(np.mean(cells)) * error * math.sqrt(2 / math.pi) / (2 * release.rows)


@error_of_numbers.register(Mean)
@error_of_numbers.register(RatioMean)
def _(release: Mean | RatioMean) -> float:
    return release.expected_error()[0].value / supposed_deviation(release.grid)


@error_of_numbers.register
def _(release: Heaping) -> float:
    """The share of records that must have a value before it is published."""
    return release.least_seen / release.rows


@error_of_numbers.register
def _(release: MeanCurve) -> float:
    return release.expected_error()[0].value / max(map(supposed_deviation, release.grids))


@error_of_numbers.register
def _(release: Moments) -> float:
    errors = zip(release.domain.axes, release.expected_error(), strict=True)
    return max(
        each.value
        / (supposed_deviation(axis) if isinstance(axis, Grid) and in_order(axis) else 0.5)
        for axis, each in errors
    )


@error_of_numbers.register
def _(release: ColumnQuantiles) -> float:
    return release.rank_error * release.groups / release.rows


@error_of_numbers.register
def _(release: EstimatesDensity) -> float:
    return release.whole_error / 2


@error_of_numbers.register
def _(release: TunedDensity) -> float:
    return release.usual.whole_error / 2


@singledispatch
def table_error(
    release: Release, names: Sequence[str], shares: Shares | None = None
) -> float | None:
    """The error of the table of these columns; None if the release draws no table with all of them."""
    return error_as_measured(release, names)


@table_error.register(Microdata)
@table_error.register(CompressedMicrodata)
def _(release: Records, names: Sequence[str], shares: Shares | None = None) -> float | None:
    if not {*names} <= {*release.domain.names}:
        return None
    return ModelledTables(release, _or_typical(release, shares)).moved(names)


@singledispatch
def pairs_error(release: Release) -> float:
    """The mean error of the tables of two columns; infinite if the release draws none."""
    return math.inf


@pairs_error.register
def _(release: Histogram) -> float:
    pairs = combinations(release.domain.names, 2)
    return fmean(table_error(release, pair) or 0.0 for pair in pairs)


@pairs_error.register
def _(release: FittedTables) -> float:
    return relative_error(release) or 0.0


@singledispatch
def error_as_measured(release: Release, names: Sequence[str]) -> float | None:
    """The share of records that noise moves in the table of these columns, without a model."""
    return None


@error_as_measured.register(Histogram)
@error_as_measured.register(FittedTables)
def _(release: Dense, names: Sequence[str]) -> float | None:
    of = release.domain.names
    drawn = [attrs for attrs in release.tables if {*names} <= {of[a] for a in attrs}]
    if not drawn:
        return None
    places = tuple(a for a in drawn[0] if of[a] in names)
    records = release.rows * float(release.step)
    cells = math.prod(release.domain.shape[a] for a in places)
    return cells * math.sqrt(cell_variances(release)(places) * 2 / math.pi) / (2 * records)


def supposed_deviation(axis: Grid) -> float:
    """The assumed standard deviation of a column, from its bounds only."""
    first, last = ends_of(axis)
    return (last - first) / NARROW
