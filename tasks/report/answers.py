"""The report's sentences on requested means, one for each release of means.

A sentence names groups that were chosen by their noisy means, so the intervals of all means are
simultaneous. ``model_answers`` does the same for models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np

from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.abilities import StatesMeans
from schemas.survey.columns import CategoricalColumn, Column
from tasks.charts.svg import supported
from tasks.report.cells import read_labels, written
from tasks.report.parts import Source
from tasks.report.release import headed
from tasks.report.wording import category, has_value

NEARLY = 0.9
"""An interval that covers this fraction of the range between the bounds says nothing about a mean."""


class Statement(NamedTuple):
    """A sentence; ``leaves_open``: whether the noise is too large for an answer."""

    sentence: str
    leaves_open: bool = False


class GroupMean(NamedTuple):
    """A mean, the ends of its interval and its standard error; ``group``: words such as “Region” is
    north, or ``""``; ``column``: the averaged column."""

    group: str
    mean: float
    low: float
    high: float
    error: float
    column: Column | None = None

    @property
    def unknown(self) -> bool:
        """Whether the interval covers nearly the whole range between the bounds, and so says nothing."""
        if self.column is None or isinstance(self.column, CategoricalColumn):
            return False
        lower, upper = self.column.bounds
        return min(self.high, upper) - max(self.low, lower) >= NEARLY * (upper - lower)

    def within(self, lower: float, upper: float) -> GroupMean:
        """The mean and its interval, moved between two bounds."""
        mean, low, high = np.clip((self.mean, self.low, self.high), lower, upper).tolist()
        return self._replace(mean=mean, low=low, high=high)

    @property
    def text(self) -> str:
        numbers = supported((self.mean, self.low, self.high), self.error)
        middle, low, high = (written(self.column, number) for number in numbers)
        of_group = f" where {self.group}" if self.group else ""
        if self.mean <= self.low < self.high:  # noise moved it outside the possible values
            return f"at most {high}{of_group}"
        return f"{middle} ({low} to {high}){of_group}"


def compared_groups(
    title: str, groups: Sequence[GroupMean], noise: str, what: str = "the mean"
) -> Statement:
    """A sentence on the only mean, or on the two groups that differ most. ``noise`` begins the sentence
    if no difference is clear; ``what``: the mean, or the share of an event."""
    groups = [group for group in groups if not group.unknown]
    if not groups:
        return Statement(f"{title}: the noise is too large for any mean.", leaves_open=True)
    if len(groups) == 1:
        return Statement(f"{title}: {what} is {groups[0].text}.")
    # All pairs are compared, because the largest and the smallest mean may be the least certain.
    more, less = max(permutations(groups, 2), key=lambda pair: pair[0].low - pair[1].high)
    if more.low <= less.high:
        return Statement(f"{title}: {noise} it open whether groups differ.", leaves_open=True)
    return Statement(f"{title}: {what} is {more.text}, and {less.text}.")


def releases_of_means(sources: Sequence[Source]) -> list[Source]:
    """The releases of means with intervals that can be computed at every level."""
    return [
        source
        for source in sources
        if isinstance(release := source.release, StatesMeans)
        and isinstance(release.mechanism, DiscreteLaplace)
    ]


def number_of_means(source: Source) -> int:
    means: StatesMeans = source.charted
    return means.groups


def answer_of_means(source: Source, chance: float) -> Statement:
    """The answer from one release; each interval misses with probability at most ``chance``."""
    means: StatesMeans = source.charted
    columns = source.plan.described_columns
    found = source.read(source.record.tables[0])
    *by, averaged = source.release.domain.names
    labels = [read_labels(found, name, columns, category) for name in by]
    numbers = [found[name].astype(float) for name in ("mean", "standard_error")]
    ends = means.intervals(source.noisy, 1 - chance)
    groups = []
    for i, (mean, error, low, high) in enumerate(zip(*numbers, *ends, strict=True)):
        if math.isfinite(mean) and math.isfinite(error):
            pairs = zip(by, labels, strict=True)
            group = " and ".join(has_value(columns, name, of[i]) for name, of in pairs)
            of_column = columns[averaged]
            told = GroupMean(group, float(mean), float(low), float(high), float(error), of_column)
            groups.append(told)
    title = headed(source.plan.section(source.record.name))
    return compared_groups(title, groups, "noise leaves")
