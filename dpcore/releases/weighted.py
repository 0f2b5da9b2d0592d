"""Counts of weight instead of records: the releases of counts, over steps of a survey weight.

A record counts as a whole number of steps, from none to the largest weight; the tally that such a
release gets holds steps.  All that its kind does to counts of records it does to counts of steps,
with the sensitivity of a unit that has as many records as it has steps; what is published is
multiplied by the step, as post-processing:

    weight 1.4, step 1/2  --engine-->  3 steps  --privacy line, post-processing-->  3 * 1/2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.releases.base import ErrorStatement, Published, Release, Table
from dpcore.releases.compressed_microdata import CompressedMicrodata
from dpcore.releases.histogram import FALSE_CELLS, Histogram
from dpcore.releases.margins import Margins
from dpcore.releases.microdata import Microdata
from dpcore.statistic import Noisy

WORDS = (
    ("Count of records", "Sum of weights"),
    ("exact count", "exact sum of weights"),
    ("of a count", "of a sum of weights"),
    ("whole number", "multiple of the step"),
    ("Whole number", "Multiple of the step"),
    ("of rows", "of all weights"),
    ("the rows", "all weights"),
)
"""What is said of counts, and what of weights."""

IN_STEPS = ("sum_of_counts", "threshold")
"""Facts that are numbers of steps."""


@dataclass(frozen=True)
class Weighted(Release):
    """A release of steps; ``step``: what one of them weighs.

    ``rows`` is the public scale of the sum of all weights, in steps.
    """

    step: Fraction = field(default=Fraction(1), kw_only=True)

    def __post_init__(self) -> None:
        if not self.adjacency.weighted:
            raise ValueError("adjacency: must be that of weights")
        super().__post_init__()  # type: ignore[misc]

    def publish(self, noisy: Noisy) -> Published:
        published = super().publish(noisy)  # type: ignore[safe-super]
        facts = {**published.facts, "step": str(self.step)}
        facts |= {name: facts[name] * self._factor for name in IN_STEPS if name in facts}
        return Published(tuple(map(self._weigh, published.tables)), facts)

    def _weigh(self, table: Table) -> Table:
        """The table with every number of steps as a weight: those that state how wrong they are."""
        steps = {
            name
            for u in table.uncertainty
            for name in (u.column, u.standard_error, *(u.interval or ()))
        }
        columns = {
            name: values * self._factor if name in steps else values
            for name, values in table.columns.items()
        }
        descriptions = {name: _worded(text) for name, text in table.descriptions.items()}
        uncertainty = tuple(replace(u, statement=_worded(u.statement)) for u in table.uncertainty)
        return replace(table, columns=columns, descriptions=descriptions, uncertainty=uncertainty)

    @property
    def _factor(self) -> int | float:
        """Whole weights stay whole numbers."""
        return self.step.numerator if self.step.denominator == 1 else float(self.step)

    def sum_variance(self, weights: Mapping[str, NDArray[np.float64]]) -> float:
        return super().sum_variance(weights) * float(self.step) ** 2

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        statements: tuple[ErrorStatement, ...] = super().expected_error()  # type: ignore[safe-super]
        return tuple(
            s
            if s.quantity == FALSE_CELLS
            else replace(
                s,
                quantity=_worded(s.quantity),
                value=s.value * float(self.step),
                note=_worded(s.note),
            )
            for s in statements
        )


def _worded(text: str) -> str:
    for records, weights in WORDS:
        text = text.replace(records, weights)
    return text


@dataclass(frozen=True)
class WeightedHistogram(Weighted, Histogram):
    """Sums of weights of every cell of the domain, or of those above the threshold."""


@dataclass(frozen=True)
class WeightedMargins(Weighted, Margins):
    """Tables of sums of weights."""


@dataclass(frozen=True)
class WeightedMicrodata(Weighted, Microdata):
    """Tables of sums of weights over pairs of columns, and records that follow them."""


@dataclass(frozen=True)
class WeightedCompressedMicrodata(Weighted, CompressedMicrodata):
    """The same where wide columns are compressed."""


_KINDS: Mapping[type[Release], type[Weighted]] = {
    Histogram: WeightedHistogram,
    Margins: WeightedMargins,
    Microdata: WeightedMicrodata,
    CompressedMicrodata: WeightedCompressedMicrodata,
}


def weighed(release: Release, step: Fraction) -> Weighted:
    """A release over steps of weight, published as weights.

    Raises ``ValueError`` where the kind counts records only.
    """
    if type(release) not in _KINDS:
        raise ValueError("weighted: this mechanism counts records only")
    stated = {each.name: getattr(release, each.name) for each in fields(release)}
    return _KINDS[type(release)](**stated, step=step)
