"""Consistent tables of counts: each is published as unbiased estimates, and as whole counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.post.tables.bounded import bounded_interval
from dpcore.post.tables.count_errors import count_errors
from dpcore.releases.counts.unit import (
    OF_COUNTS,
    TableOfCounts,
    count_uncertainty,
    estimate_uncertainty,
)
from dpcore.releases.table import ONE_SIDED, TWO_SIDED, Table, TableColumn
from dpcore.releases.tables.names import dotted_name


class AgreedTables(TableOfCounts):
    """A release of count tables over ``domains`` that agree with each other."""

    statistics = (*(name for name in OF_COUNTS if name != "noisy_count"), "estimate")

    estimate_means: ClassVar[str]
    """The end of the description of ``estimate``, after the counted unit."""

    count_means: ClassVar[str]
    """The end of the description of ``count``, after "not negative"."""

    count_caveat: ClassVar[str] = (
        " The standard error includes the distance between count and estimate."
    )
    """An additional statement about the error of ``count``."""

    @abstractmethod
    def described(self, domain: Domain) -> Iterable[TableColumn]:
        """The columns that describe the cells of a table."""

    def table_name(self, domain: Domain) -> str:
        return dotted_name(self.name, domain)

    def agreed_tables(
        self,
        estimates: Sequence[Floats],
        stddevs: Sequence[Floats],
        counts: Sequence[Integers],
        again: Iterable[tuple[Sequence[Integers], Sequence[Floats]]],
    ) -> tuple[Table, ...]:
        """The published tables; each argument has one array for each of ``domains``.

        ``again``: counts and estimates simulated with new noise on the counts, which give the errors of
        ``counts``.
        """
        sizes = [each.size for each in counts]
        whole, unbiased, errors = map(_all_cells, (counts, estimates, stddevs))
        ends = bounded_interval(unbiased, TWO_SIDED * errors, ONE_SIDED * errors, self.most_rows)
        pairs = ((_all_cells(fitted), _all_cells(estimated)) for fitted, estimated in again)
        around = count_errors(whole, unbiased, errors, ends, whole, sizes, pairs)
        columns = (unbiased, errors, *ends, whole, *around)
        parts = zip(*(np.split(each, np.cumsum(sizes)[:-1]) for each in columns), strict=True)
        return tuple(map(self._table, self.domains, parts))

    def _table(self, domain: Domain, numbers: tuple[NDArray[Any], ...]) -> Table:
        unit = self.unit
        estimate, error, low, high, whole, count_error, lower, upper = numbers
        total = f" and with the number of {unit.things}" if self.adjacency.public_rows else ""
        meaning = f"A {unit.whole} that is not negative; {self.count_means}"
        columns = [
            *self.described(domain),
            *unit.estimate_columns(
                estimate, error, (low, high), self.estimate_means.format(total=total)
            ),
            *unit.count_columns(whole, count_error, (lower, upper), self.most_rows, meaning),
        ]
        known = estimate_uncertainty(unit), count_uncertainty("estimate", unit, self.count_caveat)
        return Table("tables", self.table_name(domain), columns, known)


def _all_cells(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([table.ravel() for table in tables])
