"""Reads a published bundle: its tables, functions at any points, more records, sums with errors.

    bundle = BundleReader.open(Path("published/fair-1978/demo"))  # checks every file
    bundle.evaluate("affairs-density", {"affairs": [0.5, 2.0]})   # with interval and band
    bundle.sample("respondents", 100_000)                         # as many records as wanted
    young = bundle.total("all-pairs.age.affairs", lambda t: t["age"] <= 22)
    young.value, young.standard_error, young.interval

A bundle contains its plan and its noisy statistics, from which the reader computes the same results as
dprelease itself.  It needs pyarrow, but neither pandas nor Prefect nor a database; ``dprelease.Bundle``
gives its answers to users, as data frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from dpcore.arrays import Floats
from dpcore.domain.domain import Domain
from dpcore.errors import BundleError, InputError
from dpcore.estimates.estimate import Estimate, share_of
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.joined import Joined, join
from dpcore.line.statistic import Noisy
from dpcore.releases.abilities import Evaluable
from dpcore.releases.counts.cells import cell_names
from dpcore.releases.counts.unit import tables_of_counts
from dpcore.releases.table import ENDS
from schemas.bundle.draws import noisy_of
from schemas.bundle.manifest import Manifest, ReleaseRecord
from schemas.plan import Plan, published_plan
from schemas.plan.synthesis import IMPLICATE
from tasks.bundle.drawn import DrawnPlan
from tasks.bundle.listing import Columns, ListedTable, arrays_of, read_table, tables_of
from tasks.bundle.records import synthetic_records
from tasks.bundle.verify import read_manifest, verify_files
from tasks.bundle.weights import Weights, counts_in, described_values, factors_of
from tasks.inference.fit import DIRECTLY, TABLES, Fit
from tasks.inference.measured import meant, measured_means, wider


@dataclass(frozen=True)
class BundleReader:
    """A published bundle: its plan, draws and tables, and what follows from them."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path) -> BundleReader:
        """Check every file of the bundle in a folder.

        Raises ``InputError`` if the folder is no bundle, and ``BundleError`` if the manifest is not
        valid, or a file was changed, added or removed after publication.
        """
        manifest = read_manifest(path)
        verify_files(path, manifest)
        return cls(path, manifest)

    @cached_property
    def plan(self) -> Plan:
        """The plan, without the location of the private table."""
        return published_plan(self.manifest.plan)

    @cached_property
    def tables(self) -> Mapping[str, ListedTable]:
        """Every table by its name."""
        return tables_of(self.manifest.model_dump(mode="json"))

    def table(self, name: str) -> Columns:
        """The columns of a table without its replicates; nulls are masked."""
        return arrays_of(read_table(self.path, self.tables, name))

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
        cost in privacy.  Adds ``estimate``, ``standard_error``, ``lower_90`` and ``upper_90`` (normal).
        """
        columns, found = self.table(table), self.joined(table)
        if found is None:
            raise InputError(
                f"{table}: has no best estimates, because its release has no counts that can be combined"
                f" with others; read its published numbers with `table({table!r})`"
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
        """The best estimate of the number of records in some cells of a table of counts.

        It comes from all releases of the bundle, so two tables give one answer.  Its error is exact: it
        includes covariances of cells, which arise when tables are made consistent.
        """
        columns = self.table(table)
        if not len(counts_in(table, columns)):
            raise InputError(f"{table}: has no rows. {self._explain_absence(table)}".rstrip())
        factors = factors_of(table, columns, weights)
        if not factors.any():
            values = described_values(columns, self.plan.described_columns)
            raise InputError(f"{table}: no row is chosen; its columns hold {values}")
        return self._sum(table, columns, factors)

    def share(self, table: str, part: Weights, of: Weights = None) -> Estimate:
        """The share of the records ``of`` (all by default) that are also in ``part``; both are noisy.

        ``part`` and ``of``: true or false for each row.  If the number of records ``of`` is near zero,
        the share has no standard error, but a 90% set (``dpcore.estimates.estimate.share_of``).
        Raises ``InputError`` for weights other than true and false.
        """
        self.total(table, of)  # refuses a table without rows, and a choice of none
        columns = self.table(table)
        factors, chosen = (factors_of(table, columns, weights) for weights in (of, part))
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
            release = tables_of_counts(self.plan.built).get(self.record_of(table).name)
            found = None
            if release is not None:
                domain = self._domains[table]
                found = join(f"{table}: ", domain, release, self.drawn.counted)
            self._joins[table] = found
        return self._joins[table]

    @cached_property
    def _joins(self) -> dict[str, Joined | None]:
        return {}

    @cached_property
    def _domains(self) -> dict[str, Domain]:
        """The columns of each table."""
        several = tables_of_counts(self.plan.built).values()
        return {release.table_name(d): d for release in several for d in release.domains}

    def _sum(self, table: str, columns: Columns, factors: Floats) -> Estimate:
        record, found = self.record_of(table), self.joined(table)
        if found is not None:
            value, variance = found.sum(factors)
            return Estimate(value, variance**0.5, found.draws)
        release = tables_of_counts(self.plan.built).get(record.name)
        if release is None:
            raise InputError(f"{record.name}: its numbers cannot be added up")
        try:
            variance = release.sum_variance({table: factors})
        except ValueError as error:
            raise InputError(str(error)) from None
        value = float(factors @ counts_in(table, columns))
        return Estimate(value, variance**0.5, frozenset({record.draw_sha256}))

    def _explain_absence(self, table: str) -> str:
        """The reason, stated by the release, why cells are missing from a table."""
        facts = self.record_of(table).facts
        threshold = f" The threshold is {facts['threshold']:,}." if "threshold" in facts else ""
        return f"{facts.get('absent_cells', '')}{threshold}"

    def evaluate(self, release: str, points: Mapping[str, ArrayLike]) -> Columns:
        """A density, function or machine at points, given as one array for each of its columns."""
        noisy, function = self.draw(release), self.plan.built[release]
        if not isinstance(function, Evaluable):
            raise InputError(f"{release}: is not a function, so it cannot be evaluated at points")
        try:
            arrays = {name: np.atleast_1d(np.asanyarray(points[name])) for name in points}
            return function.evaluate(noisy, arrays)
        except ValueError as error:
            raise InputError(f"{release}: {error}") from None
        except TypeError:
            raise InputError(
                f"{release}: map each of {list(function.domain.names)} to an array of its type; mask"
                " nulls (numpy.ma) instead of None"
            ) from None

    def sample(self, table: str, rows: int) -> Columns:
        """Any number of synthetic records; the same number always gives the same records.

        With ``linked`` in the plan, each record is a whole unit.
        """
        names = [record.name for record in self.manifest.synthesis]  # except withheld ones
        found = next((s for s in self.plan.synthesis if s.name == table and table in names), None)
        if found is None:
            raise InputError(
                f"{self.path}: has no synthetic table {table!r}; its synthetic tables: {names}"
            )
        if not isinstance(rows, int | np.integer) or isinstance(rows, bool) or rows < 1:
            raise InputError(f"{table}: rows must be a positive whole number, not {rows!r}")
        records = synthetic_records(self.plan, found, self.draw, rows)
        return dict(records.table(table, self.plan.record_columns).columns)

    def implicates(self, table: str) -> list[Columns]:
        """The implicates of a synthetic table, for ``dpcore.estimates.combine``."""
        columns = self.table(f"microdata/{table}.implicates")
        which = columns.pop(IMPLICATE)
        return [
            {name: values[which == each] for name, values in columns.items()}
            for each in np.unique(which)
        ]

    def fit(self, formula: str, family: str | None = None) -> Fit:
        """A model, such as ``"affairs ~ religious + educ"``, from the release that answers it best.

        That is a release of this model (kind ``model``), or for a linear model ``moments`` of all its
        columns. Other models are fitted to noisy tables, and to synthetic records for everything else
        they need; notes name releases that measure some of it more precisely. Raises ``InputError`` if
        columns that the model relates were not measured together.
        """
        formula, family = meant(self.plan, formula, family)
        name, made = self.drawn.fit(formula, family)
        if made.way == DIRECTLY:
            return made
        if made.way == TABLES:
            made = replace(made, notes=(*made.notes, *measured_means(self.plan, formula)))
        return replace(made, notes=(*made.notes, *wider(self.plan, name, made)))

    @property
    def evidence(self) -> Evidence:
        """Consistent tables, and records that follow them, for the release with the most columns."""
        return self.drawn.evidence()
