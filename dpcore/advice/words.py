"""Expected errors of releases in words, for a verdict that people read before any data is opened."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

from dpcore.advice.usable import GOOD
from dpcore.releases.abilities import EstimatesDensity
from dpcore.releases.base import Release
from dpcore.releases.counts.heaping import Heaping
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.models.by_period import EstimatesRun
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.tables.series import SeriesRun


@singledispatch
def in_words(release: Release, error: float, hidden: Sequence[str] = ()) -> str:
    """A relative error in words for readers; ``hidden``: the terms of a model that noise hides."""
    first = release.expected_error()[0]
    return f"{first.quantity} {first.value:.3g}"


def _percent(error: float) -> str:
    return f"{float(f'{100 * min(error, 1.0):.2g}'):g}%"


@in_words.register
def _(release: TableOfCounts, error: float, hidden: Sequence[str] = ()) -> str:
    return f"noise moves {_percent(error)} of the records of a table to wrong cells"


@in_words.register
def _(release: SeriesRun, error: float, hidden: Sequence[str] = ()) -> str:
    return f"noise moves {_percent(error)} of the records of a period to wrong cells"


@in_words.register
def _(release: EstimatesRun, error: float, hidden: Sequence[str] = ()) -> str:
    return in_words(release.inner, error, hidden)


@in_words.register
def _(release: Heaping, error: float, hidden: Sequence[str] = ()) -> str:
    return f"a value is published if at least {_percent(error)} of the records share it"


@in_words.register(Mean)
@in_words.register(RatioMean)
def _(release: Mean | RatioMean, error: float, hidden: Sequence[str] = ()) -> str:
    of = f"{_percent(error)} of the column's usual standard deviation"
    return f"the standard error of a mean is {of}"


@in_words.register
def _(release: MeasuredModel, error: float, hidden: Sequence[str] = ()) -> str:
    if not math.isfinite(error):
        means = "means of groups" if release.groups > 1 else "coefficients"
        return f"noise hides most of the {means}"
    times = f"{math.hypot(1.0, error / GOOD):.3g} times as wide as without noise"
    typical = "if columns spread over their bounds as usual and no category is rare"
    lost = f"; noise hides {', '.join(hidden)}" if hidden else ""
    so = "usually" if release.groups > 1 else "up to"
    return f"95% intervals are {so} {times} {typical}{lost}"


@in_words.register
def _(release: EstimatesDensity, error: float, hidden: Sequence[str] = ()) -> str:
    parts = release.error_parts
    mostly = max(parts, key=parts.__getitem__)
    moving = "noise moves" if mostly == "noise" else f"{mostly} and noise move"
    return f"{moving} at most {_percent(error)} of the records; smoothing error is not included"
