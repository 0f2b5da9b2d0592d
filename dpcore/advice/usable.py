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

import numpy as np

from dpcore.advice.cell_noise import alike, cell_variances
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
from dpcore.releases.counts.unit import TableOfCounts
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


def verdict(error: float) -> str:
    """Whether a relative error is good, rough or not usable."""
    return VERDICTS[(error <= ROUGH) + (error <= GOOD)]


Shares = Mapping[str, Floats]
"""For each column, the assumed share of each cell (cells,)."""


def read_axes(release: Release) -> tuple[Axis, ...]:
    """The axes whose ``shares`` the functions here read; those of a model's terms are one member's."""
    if isinstance(release, MeasuredModel) and release.terms is not None:
        return release.terms.axes
    return release.domain.axes


def relative_error(release: Release, shares: Shares | None = None) -> float | None:
    """The error, or None if its scale is unknown; ``shares``: by default those typical of numbers."""
    if isinstance(release, Microdata | CompressedMicrodata):
        return _of_records(release, shares)
    if isinstance(release, MeasuredModel):
        return _of_model(release, shares or {})
    if isinstance(release, EstimatesRun):
        return relative_error(release.inner, shares)
    if isinstance(release, Mean | RatioMean) and shares and release.grid.name in shares:
        return _of_mean(release, shares[release.grid.name])
    return error_of_numbers(release)


def _of_model(release: MeasuredModel, shares: Shares) -> float:
    """``GOOD`` times the largest ratio of privacy to sampling error of a coefficient, drawn for the
    assumed shares.  For means by group it is the median ratio.  The constant is left out.

    If noise hides most of them, it is infinite; if it hides some coefficients, or half of the means, the
    model is at best rough.
    """
    ratios = _ratios(release, shares)
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


def hidden_terms(release: Release, shares: Shares | None) -> list[str]:
    """The terms of a measured model that noise is expected to hide; empty for other releases."""
    if isinstance(release, EstimatesRun):
        return hidden_terms(release.inner, shares)
    if not isinstance(release, MeasuredModel) or release.groups > 1:
        return []
    ratios = _ratios(release, shares or {})
    if ratios is None:
        return []
    assert release.terms is not None
    names = [release.terms.names[i] for i in _but_constant(release)]
    return [name for name, each in zip(names, ratios, strict=True) if not math.isfinite(each)]


def _of_mean(release: Mean | RatioMean, shares: Floats) -> float:
    """The error of a mean; for a ``RatioMean`` it is larger if the mean is near a bound."""
    grid = release.grid
    grid = replace(grid, cells=min(grid.cells, MOST_EXAMINED))  # the grid that the shares describe
    edges = grid.edge(np.arange(grid.cells + 1)).astype(np.float64)
    numbers = np.r_[(edges[1:] + edges[:-1]) / 2, grid.points]
    known = shares[: len(numbers)] / shares[: len(numbers)].sum()
    mean = float(known @ numbers)
    deviation = math.sqrt(float(known @ (numbers - mean) ** 2))
    error, *others = (each.value for each in release.expected_error())
    if isinstance(release, RatioMean):
        away = abs(2 * mean - edges[0] - edges[-1]) / (edges[-1] - edges[0])
        error = math.hypot(error, away * math.sqrt(max(others[0] ** 2 - error**2, 0.0)))
    return error / (deviation or supposed_deviation(grid))  # zero if one cell has all records


def _of_records(release: Microdata | CompressedMicrodata, shares: Shares | None) -> float:
    """The mean error over pairs of columns, or over the drawn tables if none is a pair.

    Wide columns get ``READ`` groups, because their real number depends on the noise.
    """
    if isinstance(release, CompressedMicrodata):
        with suppress(ValueError):  # a plan may require more groups
            release = replace(release, keep=READ, categories=READ)
    expected = ModelledTables(release, _or_typical(release, shares))
    errors = [expected.moved(names) or 0.0 for names in _some_tables(release)]
    measured = release.as_measured(None).release
    alone = [_moved(measured, [name]) or 0.0 for name in release.domain.names]
    return max(float(np.mean(errors)), float(np.mean(alone)))


def graded_distances(
    release: Microdata | CompressedMicrodata,
    shares: Shares | None = None,
    tables: Sequence[Sequence[str]] = (),
) -> list[tuple[float, float]]:
    """For ``tables``, by default some that represent all: the distance by which a bundle grades them,
    and the share of records outside the largest cell."""
    expected = ModelledTables(release, _or_typical(release, shares))
    tables = tables or _some_tables(release)
    return [(expected.apart(names) or 0.0, expected.outside(names)) for names in tables]


def _some_tables(release: Microdata | CompressedMicrodata) -> list[list[str]]:
    """The columns of some of the drawn pairs, or of the drawn tables if none is a pair."""
    names = release.domain.names
    tables = [attrs for attrs in release.tables if len(attrs) == 2] or release.tables
    return [[names[a] for a in attrs] for attrs in some_of(tables)]


def _or_typical(release: Release, shares: Shares | None) -> Shares:
    axes = release.domain.axes
    return shares or {axis.name: typical_shares(axis, "around") for axis in axes}


@singledispatch
def error_of_numbers(release: Release) -> float | None:
    """The error of a release of numbers; a package that adds a kind registers a function here."""
    return None


@error_of_numbers.register
def _(release: Histogram) -> float | None:
    if isinstance(release, ThresholdedHistogram | RandomHistogram):
        return None  # empty cells have no noise
    return table_error(release, release.domain.names)


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


def in_words(release: Release, error: float, hidden: Sequence[str] = ()) -> str:
    """A relative error in words for readers; ``hidden``: the terms of a model that noise hides."""
    percent = f"{float(f'{100 * min(error, 1.0):.2g}'):g}%"
    if isinstance(release, TableOfCounts):
        return f"noise moves {percent} of the records of a table to wrong cells"
    if isinstance(release, SeriesRun):
        return f"noise moves {percent} of the records of a period to wrong cells"
    if isinstance(release, EstimatesRun):
        return in_words(release.inner, error, hidden)
    if isinstance(release, Heaping):
        return f"a value is published if at least {percent} of the records share it"
    if isinstance(release, Mean | RatioMean):
        return f"the standard error of a mean is {percent} of the column's usual standard deviation"
    if isinstance(release, MeasuredModel):
        if not math.isfinite(error):
            means = "means of groups" if release.groups > 1 else "coefficients"
            return f"noise hides most of the {means}"
        times = f"{math.hypot(1.0, error / GOOD):.3g} times as wide as without noise"
        typical = "for columns typical of their bounds, without rare categories"
        lost = f"; noise hides {', '.join(hidden)}" if hidden else ""
        so = "usually" if release.groups > 1 else "up to"
        return f"95% intervals are {so} {times} {typical}{lost}"
    first = release.expected_error()[0]
    if isinstance(release, EstimatesDensity):
        parts = release.error_parts
        mostly = max(parts, key=parts.__getitem__)
        moving = "noise moves" if mostly == "noise" else f"{mostly} and noise move"
        return f"{moving} at most {percent} of the records; smoothing error is not included"
    return f"{first.quantity} {first.value:.3g}"


def table_error(
    release: Release, names: Sequence[str], shares: Shares | None = None
) -> float | None:
    """The error of the table of these columns; None if the release draws no table with all of them."""
    if isinstance(release, Microdata | CompressedMicrodata):
        if not {*names} <= {*release.domain.names}:
            return None
        return ModelledTables(release, _or_typical(release, shares)).moved(names)
    return _moved(release, names)


def _moved(release: Release, names: Sequence[str]) -> float | None:
    """The share of records that noise moves in the table of these columns, without a model."""
    if not isinstance(release, Histogram | FittedTables) or not {*names} <= {*release.domain.names}:
        return None
    of, drawn = release.domain.names, [tuple(range(len(release.domain.axes)))]
    if isinstance(release, FittedTables):
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
