"""What every release answers, with and without data.

A release is a frozen dataclass of public values.  Without data it says which tally it needs
(``domain``), what noise its share of the budget buys (``mechanism``, which knows its sensitivity
and its privacy event) and how wrong its result will be (``expected_error``).  With data it does
two things, one on each side of the privacy line:

    tally --statistic--> Exact --[ perturb ]--> Noisy --publish--> tables
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.budget import Budget
from dpcore.domain import Axis, Domain, Grid, Tally
from dpcore.events import Event
from dpcore.mechanisms import Mechanism
from dpcore.statistic import Exact, Noisy


@dataclass(frozen=True)
class ErrorStatement:
    """How wrong a published quantity is expected to be, from public values alone."""

    quantity: str
    value: float
    note: str = ""


LEVEL = 0.9
"""Published intervals hold what they are about this often, at least or nearly, as they say."""

TWO_SIDED, ONE_SIDED = (NormalDist().inv_cdf(chance) for chance in ((1 + LEVEL) / 2, LEVEL))
"""Standard errors that normal noise exceeds with probability 10%: in size, and in one direction."""


@dataclass(frozen=True)
class Uncertainty:
    """How wrong the numbers of one published column may be, and how that is known.

    ``standard_error`` and ``interval`` name columns of the same table: the root mean squared error
    of the number, and both ends of a 90% interval for what it stands for.  ``method``: exact, normal
    (an exact variance and the normal law), or simulated (the mechanism and what follows it, repeated
    on the published numbers).  ``statement`` says the rest in words.
    """

    column: str
    standard_error: str | None
    interval: tuple[str, str] | None
    method: Literal["exact", "normal", "simulated"]
    statement: str


@dataclass(frozen=True, eq=False)
class Table:
    """A published table: a name, its columns of equal length, and what each column means.

    ``about``: which column of the survey a column tells of, where it does; ``uncertainty``: how
    wrong its numbers may be.
    """

    folder: str
    name: str
    columns: Mapping[str, NDArray[Any]]
    descriptions: Mapping[str, str]
    about: Mapping[str, str] = field(default_factory=dict)
    uncertainty: tuple[Uncertainty, ...] = ()

    def __post_init__(self) -> None:
        if set(self.columns) != set(self.descriptions):
            raise ValueError(f"table {self.name}: columns and descriptions differ")
        named = set(self.about).union(
            *({u.column, *(u.interval or ())} for u in self.uncertainty),
            {u.standard_error for u in self.uncertainty if u.standard_error},
        )
        if not named <= set(self.columns):
            raise ValueError(
                f"table {self.name}: {sorted(named - set(self.columns))} are no columns"
            )


@dataclass(frozen=True, eq=False)
class Published:
    """What a release publishes: tables, and facts for the manifest (JSON values)."""

    tables: tuple[Table, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Release(ABC):
    """Public facts of one release.

    ``rows``: the public number of records, or a public guess of it where neighbours differ in it:
    a scale, never a count; ``share``: the budget that the release may not exceed; ``adjacency``:
    which tables are neighbours.
    """

    name: str
    domain: Domain
    rows: int
    share: Budget
    adjacency: Adjacency = field(default=REPLACE_ONE, kw_only=True)

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The noise that the share buys."""

    @property
    def event(self) -> Event:
        """What the ledger records."""
        return replace(self.mechanism.event, adjacency=self.adjacency)

    @property
    def most_rows(self) -> int:
        """No table has more records: a larger one is refused before its statistic is made."""
        return self.adjacency.most_rows(self.rows)

    @abstractmethod
    def statistic(self, tally: Tally) -> Exact:
        """The exact statistic: private."""

    def promises(self, near: Tally, far: Tally) -> bool:
        """Whether the guarantee is about these neighbours: all pairs, but in random DP."""
        return True

    @abstractmethod
    def publish(self, noisy: Noisy) -> Published:
        """Tables for the bundle, from the noisy statistic alone."""

    def sum_variance(self, weights: Mapping[str, NDArray[np.float64]]) -> float:
        """Exact variance of the noise in a weighted sum of unbiased counts, from public values.

        ``weights``: by the name of a table, one weight for each of its rows.  Raises ``ValueError``
        where the release's numbers cannot be added up.
        """
        raise ValueError(f"{self.name}: its numbers cannot be added up")

    def supported_margin(
        self, noisy: Noisy, names: tuple[str, ...]
    ) -> tuple[NDArray[np.float64], float] | None:
        """Noisy counts over some of the columns, which synthetic records follow, and their error.

        Counts (cells,) row-major, and the standard error of each (NaN where it differs from cell to
        cell or is not known); None where the release says nothing of these columns together.
        """
        return None

    @abstractmethod
    def expected_error(self) -> tuple[ErrorStatement, ...]:
        """How wrong the published numbers will be, before any data is opened."""


@runtime_checkable
class Samplable(Protocol):
    """A release from which synthetic records can be drawn."""

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, NDArray[np.int64]]:
        """Codes (rows, columns) of synthetic records over the axes of the returned domain."""
        ...


@runtime_checkable
class Evaluable(Protocol):
    """A release that is a function, to be had at any points."""

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The function at points, one array (k,) for each of its columns, in their own units.

        Columns (k,): its value under a name of its own, ``standard_error``, and the ends of
        intervals for the value without noise.  Raises ``ValueError`` where a column is missing or
        a value lies outside what the plan allows.
        """
        ...


def named_points(points: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> list[NDArray[Any]]:
    """The arrays of exactly these columns, in order and of one length, masked as they came.

    Raises ``ValueError`` where they are others, or differ in length.
    """
    if set(points) != set(names):
        raise ValueError(f"points: must be given for {list(names)}, not for {list(points)}")
    arrays = [np.atleast_1d(np.asanyarray(points[name])) for name in names]
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        raise ValueError("points: columns must be of one length")
    return arrays


def unit_points(points: Mapping[str, NDArray[Any]], axes: Sequence[Grid]) -> NDArray[np.float64]:
    """(k, axes) points in units of each axis's range, or ``ValueError`` where one lies outside."""
    scaled = []
    given = named_points(points, tuple(axis.name for axis in axes))
    for axis, values in zip(axes, given, strict=True):
        lower, upper = axis.bounds
        if not np.all(np.ma.filled((values >= lower) & (values <= upper), False)):
            raise outside(axis, lower, upper)
        scaled.append((np.ma.getdata(values) - lower) / (upper - lower))
    return np.column_stack(scaled)


def outside(axis: Axis, lower: float, upper: float) -> ValueError:
    """Points beyond the ends of an axis: the error names the bounds that the plan states.

    An axis of whole numbers reaches half a number beyond its bounds.
    """
    half = 0.5 if isinstance(axis, Grid) and axis.integer else 0.0
    return ValueError(f"points: {axis.name} must lie in [{lower + half:.15g}, {upper - half:.15g}]")


def normal_interval(
    value: NDArray[np.float64], error: NDArray[np.float64] | float
) -> dict[str, NDArray[np.float64]]:
    """Columns with the standard error of values (k,), one or (k,), and their normal intervals."""
    width = TWO_SIDED * np.broadcast_to(error, value.shape)
    return {
        "standard_error": np.broadcast_to(error, value.shape).copy(),
        "lower_90": value - width,
        "upper_90": value + width,
    }


def post_processing_generator(noisy: Noisy) -> np.random.Generator:
    """Randomness for what follows the privacy line: it protects nothing, and repeats.

    It is seeded by the noisy statistic, so that the same draw always publishes the same bundle.
    """
    return np.random.default_rng(int(noisy.digest(), 16))
