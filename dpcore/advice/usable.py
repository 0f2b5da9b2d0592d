"""Whether what a release publishes will be usable: its noise beside what readers look at.

From public values alone:

    tables       records that the noise puts into wrong cells, as a share of all (total variation);
                 where cells are merged, in tables of a dozen groups
    records      the same of the pairs that they follow, which a model of all tables has made more
                 accurate, but at least that of single columns as they were measured: where these are
                 noise, a model has nothing to go by
    a mean       its standard error, in standard deviations of the column; of a curve, on average
    densities    half the whole error, which bounds the same share
    a model      the privacy errors of coefficients, beside their sampling errors

A standard deviation is private, so it is taken as a twentieth of the range of the bounds: a column
that fills its bounds has a larger one, and is more accurate than this.  Up to ``GOOD`` readers hardly
notice the noise; beyond ``ROUGH`` they see little else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import singledispatch

import numpy as np

from dpcore.advice.cell_noise import alike, cell_variances
from dpcore.domain.axes import Grid, in_order
from dpcore.domain.cell_values import ends_of
from dpcore.releases.abilities import EstimatesDensity
from dpcore.releases.base import Release
from dpcore.releases.counts.heaping import Heaping
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.random_histogram import RandomHistogram
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.densities.tuned import TunedFunction
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.mean_curve import MeanCurve
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.numbers.quantiles import Quantiles
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.fitted import FittedTables
from dpcore.releases.tables.microdata import Microdata

GOOD, ROUGH = 0.05, 0.25

INSIDE = 0.1
"""Of an error inside bins, next to one of bins."""

NARROW = 20
"""The range of bounds in standard deviations."""

READ = 12
"""Groups of a wide column."""

HALVED, MODELLED = 0.07, 0.8
"""A model of all tables removes noise from each: half of it where noise would move this share, and about
this power of the share otherwise (over pairs of five public tables, ``benchmarks.first_hour``)."""

MOST_TABLES = 12
"""At most this many tables represent all."""


def verdict(error: float) -> str:
    """Of a relative error."""
    return "good" if error <= GOOD else "rough" if error <= ROUGH else "not usable"


@singledispatch
def relative_error(release: Release) -> float | None:
    """None where no scale is known."""
    return None


@relative_error.register
def _(release: Histogram) -> float | None:
    if release.thresholded or isinstance(release, RandomHistogram):
        return None  # cells that nobody is in have no noise
    return table_error(release, release.domain.names)


@relative_error.register
def _(release: FittedTables) -> float:
    pairs = [attrs for attrs in release.tables if len(attrs) == 2]
    groups = alike(release, pairs or release.tables)
    places = np.linspace(0, len(groups) - 1, min(len(groups), MOST_TABLES)).round().astype(int)
    some, names = [groups[i] for i in places], release.domain.names
    errors = [table_error(release, [names[a] for a in group[0]]) or 0.0 for group in some]
    together = float(np.average(errors, weights=[len(group) for group in some]))
    if not isinstance(release, Microdata):
        return together
    alone = [_moved(release, [name]) or 0.0 for name in names]
    return max(together, float(np.mean(alone)))


@relative_error.register
def _(release: CompressedMicrodata) -> float | None:
    """With as many groups as people read: how many there are depends on the noise itself."""
    with suppress(ValueError):
        release = replace(release, keep=READ)
    return relative_error(release.as_measured(None).release)


@relative_error.register(Mean)
@relative_error.register(RatioMean)
def _(release: Mean | RatioMean) -> float:
    return release.expected_error()[0].value * NARROW / _range(release.grid)


@relative_error.register
def _(release: Heaping) -> float:
    """Values inside bins matter less than which bins records are in."""
    return release.mechanism.stddev / release.rows * INSIDE


@relative_error.register
def _(release: MeanCurve) -> float:
    widest = max(_range(grid) for grid in release.grids)
    return release.expected_error()[0].value * NARROW / widest


@relative_error.register
def _(release: Moments) -> float:
    errors = zip(release.domain.axes, release.expected_error(), strict=True)
    return max(
        each.value * (NARROW / _range(axis) if isinstance(axis, Grid) and in_order(axis) else 2)
        for axis, each in errors
    )


@relative_error.register
def _(release: Quantiles) -> float:
    return release.rank_error * release.parts / release.rows


@relative_error.register
def _(release: EstimatesDensity) -> float:
    return release.whole_error / 2


@relative_error.register
def _(release: TunedFunction) -> float:
    return release.usual.whole_error / 2


@relative_error.register
def _(release: MeasuredModel) -> float:
    """Good where noise adds no more to the errors of coefficients than sampling does."""
    return GOOD * math.sqrt(max(release.width_ratio**2 - 1, 0.0))


def in_words(release: Release, error: float) -> str:
    """What a relative error means for readers."""
    percent = f"{100 * min(error, 1.0):.2g}%"
    if isinstance(release, TableOfCounts):
        made = isinstance(release, Microdata | CompressedMicrodata)
        of = "synthetic records" if made else "the records of a table"
        return f"noise moves {percent} of {of} to wrong cells"
    first = release.expected_error()[0]
    if isinstance(release, EstimatesDensity):
        return f"noise and smoothing move at most {percent} of the records"
    return f"{first.quantity} {first.value:.3g}"


def table_error(release: Release, names: list[str] | tuple[str, ...]) -> float | None:
    """Of the table of some columns that a release draws, alone or inside a larger one; else None."""
    moved = _moved(release, names)
    modelled = moved is not None and isinstance(release, Microdata | CompressedMicrodata)
    return moved / (1 + (moved / HALVED) ** MODELLED) if moved and modelled else moved


def _moved(release: Release, names: Sequence[str]) -> float | None:
    """The share of records that noise moves in such a table, before a model makes it more accurate."""
    if isinstance(release, CompressedMicrodata):
        release = release.as_measured(None).release
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


def _range(axis: Grid) -> float:
    first, last = ends_of(axis)
    return last - first
