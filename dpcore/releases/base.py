"""What every release answers, with and without data.

A release is a frozen dataclass of public values.  Without data it says which tally it needs
(``domain``), what noise its share of the budget buys (``mechanism``, which knows its sensitivity
and its privacy event) and how wrong its result will be (``expected_error``).  With data it does
two things, one on each side of the privacy line:

    tally --statistic--> Exact --[ perturb ]--> Noisy --publish--> tables
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpcore.budget import Budget
from dpcore.domain import Domain, Tally
from dpcore.mechanisms import Mechanism
from dpcore.statistic import Exact, Noisy


@dataclass(frozen=True)
class ErrorStatement:
    """How wrong a published quantity is expected to be, from public values alone."""

    quantity: str
    value: float
    note: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """A published table: a name, its columns of equal length, and what each column means."""

    folder: str
    name: str
    columns: Mapping[str, NDArray[Any]]
    descriptions: Mapping[str, str]

    def __post_init__(self) -> None:
        if set(self.columns) != set(self.descriptions):
            raise ValueError(f"table {self.name}: columns and descriptions differ")


@dataclass(frozen=True, eq=False)
class Published:
    """What a release publishes: tables, and facts for the manifest (JSON values)."""

    tables: tuple[Table, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Release(ABC):
    """Public facts of one release.

    ``rows``: the public number of records; ``share``: the budget that the release may not exceed.
    Neighbouring tables differ in one record (replace-one).
    """

    name: str
    domain: Domain
    rows: int
    share: Budget

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The noise that the share buys."""

    @abstractmethod
    def statistic(self, tally: Tally) -> Exact:
        """The exact statistic: private."""

    def promises(self, near: Tally, far: Tally) -> bool:
        """Whether the guarantee is about these neighbours: all pairs, but in random DP."""
        return True

    @abstractmethod
    def publish(self, noisy: Noisy) -> Published:
        """Tables for the bundle, from the noisy statistic alone."""

    @abstractmethod
    def expected_error(self) -> tuple[ErrorStatement, ...]:
        """How wrong the published numbers will be, before any data is opened."""


@runtime_checkable
class Samplable(Protocol):
    """A release from which synthetic records can be drawn."""

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, NDArray[np.int64]]:
        """Codes (rows, columns) of synthetic records over the axes of the returned domain."""
        ...


def post_processing_generator(noisy: Noisy) -> np.random.Generator:
    """Randomness for what follows the privacy line: it protects nothing, and repeats.

    It is seeded by the noisy statistic, so that the same draw always publishes the same bundle.
    """
    return np.random.default_rng(int(noisy.digest(), 16))
