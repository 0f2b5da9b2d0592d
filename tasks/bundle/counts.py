"""The tables and draws of an open bundle, and sums of cells of its tables of counts.

Sums have exact errors, and come from all releases of the bundle together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from dpcore.arrays import Floats
from dpcore.domain.domain import Domain
from dpcore.errors import BundleError, InputError
from dpcore.estimates.estimate import Estimate, share_of
from dpcore.estimates.joined import Joined, join
from dpcore.line.statistic import Noisy
from dpcore.releases.counts.cells import BIN, cell_names
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.table import ENDS, UNBIASED
from dpcore.releases.tables.groups import GROUP
from dpcore.suggestion import suggestion
from schemas.bundle.draws import noisy_of
from schemas.bundle.manifest import Manifest, ReleaseRecord
from schemas.plan import Plan, published_plan
from tasks.bundle.digests import manifest_bytes
from tasks.bundle.drawn import DrawnPlan
from tasks.bundle.listing import BundleTables, Columns, ListedTable, arrays_of

Weights = Callable[[Columns], ArrayLike] | ArrayLike | None
"""A weight for each row of a table, or a function from its columns to weights; None for all rows."""

MOST_NAMED = 8
"""An error lists at most this many values of a column."""


@dataclass(frozen=True)
class OpenBundle:
    """The plan, the draws and the tables of an open bundle, and sums of the tables of counts."""

    path: Path
    manifest: Manifest

    @cached_property
    def listing(self) -> BundleTables:
        """The list of its tables."""
        return BundleTables.of(self.path, json.loads(manifest_bytes(self.path)))

    @cached_property
    def plan(self) -> Plan:
        """The plan, without the location of the private table."""
        return published_plan(self.manifest.plan)

    @property
    def tables(self) -> Mapping[str, ListedTable]:
        """Every table by its name, such as ``all-pairs.age.affairs``: its file name without folder.

        The names of synthetic tables and models include their folder, because a release may have the
        same name.
        """
        return self.listing.tables

    def table(self, name: str) -> Columns:
        """The columns of a table without its replicates; nulls are masked."""
        return arrays_of(self.listing.read(name))

    def draw(self, release: str) -> Noisy:
        """The noisy statistic of a release."""
        record = next((r for r in self.manifest.releases if r.name == release), None)
        if record is None:
            raise InputError(
                f"{self.path}: has no release {release!r}; its releases: {list(self.plan.built)}"
            )
        noisy = noisy_of(arrays_of(pq.read_table(self.path / record.draw.path)))
        if noisy.digest() != record.draw_sha256:
            raise BundleError(f"{self.path}: the draw of {release} is not the one that was charged")
        return noisy

    @cached_property
    def drawn(self) -> DrawnPlan:
        """The plan with its draws."""
        return DrawnPlan(self.plan, self.draw)

    def record_of(self, table: str) -> ReleaseRecord:
        """The release of a table."""
        if table not in self._records:
            raise InputError(f"{table}: is not a table of a release, so it has no error statement")
        return self._records[table]

    @cached_property
    def _records(self) -> dict[str, ReleaseRecord]:
        """The release of each of its tables."""
        return {table.name: record for record in self.manifest.releases for table in record.tables}

    def best(self, table: str) -> Columns:
        """The cells of a table of counts, with the best estimates from all releases.

        Every release that counts some of its columns, in the same bins or others, improves them at no
        cost in privacy; ``sources`` lists these releases.  Adds ``estimate``, ``standard_error``,
        ``lower_90`` and ``upper_90`` (normal).
        """
        columns, found = self.table(table), self.joined(table)
        if found is None:
            raise InputError(
                f"{table}: its counts cannot be combined with counts of other releases"
            )
        described = {name for axis in found.axes for name in cell_names(axis)}
        cells = {name: values for name, values in columns.items() if name in described}
        names = ("estimate", "standard_error", *ENDS)
        return cells | dict(zip(names, found.columns, strict=True))

    def sources(self, table: str) -> list[str]:
        """The releases from which the numbers of ``best``, ``total`` and ``share`` come."""
        found = self.joined(table)
        return [self.record_of(table).name] if found is None else list(found.sources)

    def total(self, table: str, weights: Weights = None) -> Estimate:
        """The number of records in some cells of a table of counts, with the exact standard error.

        It is the best estimate from all releases of the bundle, so two tables give one answer (``best``,
        ``sources``).  ``weights``: true, false or a number for each row, or a
        function of the columns; all rows by default.  The error includes covariances of cells, which
        arise when tables are made consistent.
        """
        columns = self.table(table)
        if not len(_counts(table, columns)):
            raise InputError(f"{table}: has no rows. {self._explain_absence(table)}".rstrip())
        factors = _factors(table, columns, weights)
        if not factors.any():
            raise InputError(
                f"{table}: no row is chosen; its columns hold {self._describe(columns)}"
            )
        return self._sum(table, columns, factors)

    def share(self, table: str, part: Weights, of: Weights = None) -> Estimate:
        """The share of the records ``of`` (all by default) that are also in ``part``; both are noisy.

        ``part`` and ``of``: true or false for each row.  If the number of records ``of`` is near zero,
        the share has no standard error, but a 90% set (``dpcore.estimates.estimate.share_of``).
        Raises ``InputError`` for weights other than true and false.
        """
        self.total(table, of)  # refuses a table without rows, and a choice of none
        columns = self.table(table)
        factors, chosen = (_factors(table, columns, weights) for weights in (of, part))
        if not np.isin([factors, chosen], (0, 1)).all():
            raise InputError(
                f"{table}: a share needs true or false for each row, not other weights; for a mean,"
                " divide the totals of two releases, or divide by a public number"
            )
        if not (factors * chosen).any():
            self.total(table, factors * chosen)
        return share_of(lambda each: self._sum(table, columns, each), factors * chosen, factors)

    def joined(self, table: str) -> Joined | None:
        """The joint estimates of a table's counts from all releases of the bundle, or None."""
        if table not in self._joins:
            release = self.plan.built[self.record_of(table).name]
            found = None
            if isinstance(release, TableOfCounts):
                domain = self._domains[table]
                found = join(f"{table}: ", domain, release, self.drawn.parts)
            self._joins[table] = found
        return self._joins[table]

    @cached_property
    def _joins(self) -> dict[str, Joined | None]:
        return {}

    @cached_property
    def _domains(self) -> dict[str, Domain]:
        """The columns of each table."""
        several = [r for r in self.plan.built.values() if isinstance(r, TableOfCounts)]
        return {release.table_name(d): d for release in several for d in release.domains}

    def _sum(self, table: str, columns: Columns, factors: Floats) -> Estimate:
        record, found = self.record_of(table), self.joined(table)
        if found is not None:
            value, variance = found.sum(factors)
            return Estimate(value, variance**0.5, found.draws)
        release = self.plan.built[record.name]
        if not isinstance(release, TableOfCounts):
            raise InputError(f"{release.name}: its numbers cannot be added up")
        try:
            variance = release.sum_variance({table: factors})
        except ValueError as error:
            raise InputError(str(error)) from None
        value = float(factors @ _counts(table, columns))
        return Estimate(value, variance**0.5, frozenset({record.draw_sha256}))

    def _explain_absence(self, table: str) -> str:
        """The reason, stated by the release, why cells are missing from a table."""
        facts = self.record_of(table).facts
        threshold = f" The threshold is {facts['threshold']:,}." if "threshold" in facts else ""
        return f"{facts.get('absent_cells', '')}{threshold}"

    def _describe(self, columns: Columns) -> str:
        """The type and some values of each of the survey's columns in a table."""
        sides = {
            f"{name}{end}"
            for name in self.plan.described_columns
            for end in ("", "_from", "_to", BIN, GROUP)
        }
        described = []
        for name in (name for name in columns if name in sides):
            values = np.unique(np.ma.compressed(columns[name])).tolist()
            kind = type(values[0]).__name__ if values else "null"
            more = ", ..." if len(values) > MOST_NAMED else ""
            described.append(f"{name} ({kind}): {', '.join(map(repr, values[:MOST_NAMED]))}{more}")
        return "; ".join(described)


def _counts(table: str, columns: Columns) -> NDArray[Any]:
    """The most accurate unbiased counts (rows,) of a table."""
    value = next((columns[name] for name in UNBIASED if name in columns), None)
    if value is None:
        raise InputError(f"{table}: is not a table of counts")
    return value


def _factors(table: str, columns: Columns, weights: Weights) -> Floats:
    """The finite weights (rows,); a row with a null weight gets weight 0."""
    rows = _counts(table, columns).shape
    try:
        given = weights(columns) if callable(weights) else weights
    except KeyError as error:
        raise InputError(
            f"{table}: has no column {error.args[0]!r}"
            f"{suggestion(error.args[0], columns, most=3, least=0)} (NAME_from and NAME_to are the ends"
            " of a binned column's bins)"
        ) from None
    chosen: Any = np.ma.asarray(np.ones(rows) if given is None else given)
    if chosen.shape != rows:
        raise InputError(f"{table}: has {rows[0]} rows; give one weight for each")
    try:
        factors = np.ma.filled(chosen, 0).astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{table}: weights must be numbers, or true and false") from None
    if not np.isfinite(factors).all():
        raise InputError(f"{table}: weights must be finite")
    return np.asarray(factors)
