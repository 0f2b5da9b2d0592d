"""What only some releases can do; whoever needs it asks with ``isinstance``.

``Release`` (``base``) has what every kind answers.  Synthetic records, functions at any point,
replicates and conditional guarantees are abilities of their own: a class that has one inherits from it
here, or has its method.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.post.records.nested import Nested
from dpcore.post.records.rules import Rule
from dpcore.releases.base import Release

BLOCK = 2**18
"""Synthetic records are drawn, given values and written in blocks of this size."""


def blocks_of(rows: int) -> list[int]:
    """The rows of each block, about the same.

    >>> blocks_of(5), blocks_of(3 * 2**18 - 1)
    ([5], [262144, 262144, 262143])
    """
    number = max(-(-rows // BLOCK), 1)
    return [(rows + i) // number for i in reversed(range(number))]


class Samplable(Release):
    """A release from which synthetic records can be drawn."""

    refines: ClassVar[Literal["density", "counts"] | None] = None
    """What it says of the values inside the bins of another release, if anything."""

    rules: tuple[Rule, ...] = ()
    """What holds in every synthetic record."""

    nested: tuple[Nested, ...] = ()
    """Groups that follow from a column in every synthetic record."""

    @abstractmethod
    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Codes (rows, columns) of synthetic records over the axes of the returned domain."""

    def sample_blocks(self, noisy: Noisy, rows: int) -> tuple[Domain, Iterator[Integers]]:
        """The same records in blocks of about ``BLOCK`` rows, by releases that can in less memory."""
        domain, codes = self.sample(noisy, rows)
        return domain, iter(np.array_split(codes, len(blocks_of(rows))))

    @abstractmethod
    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        """Noisy counts over some of the columns, which synthetic records follow, and their error.

        Returns:
            Counts (cells,), row-major, and the standard error of each (NaN where it differs from cell
            to cell or is unknown); None where the release has no information on these columns
            together.
        """

    def supported_margins(
        self, noisy: Noisy, several: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[Floats, float] | None]:
        """``supported_margin`` of several sets of columns: many take less time together."""
        return (self.supported_margin(noisy, names) for names in several)

    def require_memory(self, rows: int) -> None:
        """Raise ``ValueError`` where ``rows`` synthetic records need more memory than allowed."""
        return

    @property
    def follows(self) -> Mapping[str, str]:
        """Columns that follow from another one in all records that are drawn: the name of that one."""
        return {}


@runtime_checkable
class Evaluable(Protocol):
    """A release that is a function, which can be evaluated anywhere."""

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The function at points, one array (k,) for each of its columns, in their own units.

        Returns:
            Columns (k,): the value under a name of its own, ``standard_error``, and the ends of
            intervals for the value without noise.

        Raises:
            ValueError: where a column is missing or a value lies outside what the plan allows.
        """
        ...


@runtime_checkable
class Replicable(Protocol):
    """A release whose unbiased columns have noise of a simple joint law."""

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        """Noise of the law in the unbiased column of each table, drawn jointly (number, rows).

        By the name of the table; tables without such a column have none.
        """
        ...


class EstimatesDensity(Release):
    """A release of a smooth density, whose whole error is known from public values."""

    @property
    @abstractmethod
    def error_parts(self) -> Mapping[str, float]:
        """The typical noise, and bounds of what is left out, relative to a uniform density."""

    @property
    def whole_error(self) -> float:
        """Noise and all that is left out together."""
        return sum(self.error_parts.values())


@runtime_checkable
class Conditional(Protocol):
    """A release whose guarantee holds for some neighbours only: random differential privacy."""

    def promises(self, near: Tally, far: Tally) -> bool:
        """Whether the guarantee holds for these neighbours."""
        ...


def promised(release: Release, near: Tally, far: Tally) -> bool:
    """Whether the release's guarantee holds for these neighbours: always, unless it is conditional."""
    return not isinstance(release, Conditional) or release.promises(near, far)
