"""A count under random differential privacy: exact if few records are on one side of the condition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpcore.domain.tally import Tally
from dpcore.line.mechanism import WorstTable
from dpcore.line.statistic import Noisy
from dpcore.releases.base import ErrorStatement
from dpcore.releases.counts.count import Count
from dpcore.releases.table import Published
from papers.random_proportion.mechanism import RandomProportion


@dataclass(frozen=True)
class RandomCount(Count):
    """A count that is exact near both ends; no prior is used, because it would change low counts, which
    are exact."""

    def __post_init__(self) -> None:
        self.adjacency.require_public_rows("random differential privacy")
        super().__post_init__()

    @cached_property
    def mechanism(self) -> RandomProportion:  # type: ignore[override]
        return RandomProportion.within(self.share, Fraction(1), self.rows)

    @property
    def answer(self) -> str:
        return f"Number of {self.what}: noisy_count, or the nearest possible count to it"

    def _answer(self, noisy_count: int) -> int:
        return min(max(noisy_count, 0), self.rows)

    def promises(self, near: Tally, far: Tally) -> bool:
        """Whether the counts are the same, or neither is published exactly."""
        one, other = self.number_counted(near), self.number_counted(far)
        low = self.mechanism.exact_below
        return one == other or low <= min(one, other) <= max(one, other) <= self.rows - low

    def worst_tables(self) -> Iterator[WorstTable]:
        """Yield the lowest count with noise, and the next one."""
        low, one = self.mechanism.exact_below, self.counted[0]
        other = next(c for c in range(self.domain.size) if c not in self.counted)
        if self.rows > 2 * low:
            yield "a count at its limit", {one: low, other: self.rows - 1 - low}, other, one

    def publish(self, noisy: Noisy) -> Published:
        published = super().publish(noisy)
        below = self.mechanism.exact_below
        facts = {
            **published.facts,
            "exact_below": below,
            "exact_above": self.rows - below,
            "exact_count": "A count below exact_below or above exact_above was published without"
            " noise, and is more accurate than stated; no column marks these counts.",
        }
        return replace(published, facts=facts)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        below = self.mechanism.exact_below
        return (
            *super().expected_error(),
            ErrorStatement(
                "the count is published exactly if it is below",
                below,
                f"or above {self.rows - below:,}; other counts have noise",
            ),
            ErrorStatement(
                "expected number of records that noise does not protect, at most",
                float(self.mechanism.event.exposure) * self.rows,
                "gamma times the number of records",
            ),
        )
