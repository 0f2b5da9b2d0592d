"""Opens a published bundle: its tables, functions at any points, more records, sums with errors.

    from tasks.bundle.reader import open_bundle

    bundle = open_bundle("published/fair-1978/demo")              # checks every digest
    bundle.evaluate("affairs-density", {"affairs": [0.5, 2.0]})   # with interval and band
    bundle.sample("respondents", 100_000)                         # as many records as wanted
    young = bundle.total("all-pairs.age.affairs", lambda t: t["age"] <= 22)
    young.value, young.standard_error, young.interval
    bundle.share("all-pairs.age.affairs", lambda t: t["age"] <= 22)          # of all records

A bundle holds its plan and its noisy statistics, from which the reader computes the same results as
dprelease itself.  It needs pyarrow, but neither Prefect nor a database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from dpcore.arrays import Floats
from dpcore.domain.domain import Domain
from dpcore.errors import BundleError, InputError
from dpcore.line.statistic import Noisy
from dpcore.post.inference.combine import combine
from dpcore.releases.abilities import Evaluable
from dpcore.releases.counts.cells import cell_names
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.table import ENDS, UNBIASED
from dpcore.releases.tables.groups import GROUP
from dpcore.suggestion import suggestion
from schemas.bundle.draws import noisy_of
from schemas.bundle.manifest import Manifest, ReleaseRecord, TableFile
from schemas.plan import Plan, published_plan
from schemas.plan.synthesis import IMPLICATE
from schemas.releases.margins import MarginsSection
from schemas.releases.microdata import MicrodataSection
from tasks.bundle.estimates import Estimate, Quotient
from tasks.bundle.evidence import evidence_of
from tasks.bundle.joined import DrawnRelease, Joined, join, parts_of
from tasks.bundle.records import synthetic_records
from tasks.bundle.verify import read_manifest, verify_files
from tasks.inference.evidence import Evidence
from tasks.inference.fit import Coefficient, Fit, fit
from tasks.inference.linear import fit_moments
from tasks.inference.questions import Independence, Quantile, correlation, independence, quantile

__all__ = ["BundleReader", "Columns", "combine", "open_bundle"]

Columns = dict[str, NDArray[Any]]
Weights = Callable[[Columns], ArrayLike] | ArrayLike | None
"""A weight for each row of a table, or a function from its columns to weights; None for all rows."""

MOST_NAMED = 8
"""An error lists at most this many values of a column."""


@dataclass(frozen=True)
class BundleReader:
    """A published bundle, checked when it was opened."""

    path: Path
    manifest: Manifest
    earlier: tuple[BundleReader, ...] = ()
    """Bundles of the same private table, whose counts are combined with those of this one."""

    @cached_property
    def plan(self) -> Plan:
        """The plan, without the location of the private table."""
        return _as_drawn(published_plan(self.manifest.plan), self.manifest.releases)

    @cached_property
    def tables(self) -> dict[str, TableFile]:
        """Every table by its name, such as ``all-pairs.age.affairs``: its file name without folder.

        The names of synthetic tables and draws include their folder, because a release may have the
        same name.
        """
        listed = {file.path: file for record in self.manifest.releases for file in record.files}
        names = {table.name: table for file in listed.values() for table in file.tables}
        rest = [file for file in self.manifest.tables if file.path not in listed]
        return names | {file.path.removesuffix(".parquet"): file for file in rest}

    def table(self, name: str) -> Columns:
        """The columns of a table without its replicates; nulls are masked."""
        file = self._file(name)
        return _columns(self._read(file, list(file.columns)))

    def replicates(self, name: str) -> Floats:
        """(number, rows) replicates of a table's unbiased column; (0, rows) where it has none."""
        file = self._file(name)
        names = file.replicates.names if file.replicates else []
        found = self._read(file, names)
        return np.array([found[each].to_numpy() for each in names]).reshape(-1, file.rows)

    def _read(self, file: TableFile, names: list[str]) -> pa.Table:
        """Some columns of a table, which may share its file with others."""
        return pq.read_table(self.path / file.path, columns=names, filters=file.filters)

    def _file(self, name: str) -> TableFile:
        if name not in self.tables:
            raise InputError(
                f"{self.path}: has no table {name!r}{suggestion(name, self.tables)};"
                f" its tables: {sorted(self.tables)}"
            )
        return self.tables[name]

    def draw(self, release: str) -> Noisy:
        """The noisy statistic of a release."""
        record = next((r for r in self.manifest.releases if r.name == release), None)
        if record is None:
            raise InputError(
                f"{self.path}: has no release {release!r}; its releases: {list(self.plan.built)}"
            )
        noisy = noisy_of(_columns(pq.read_table(self.path / record.draw.path)))
        if noisy.digest() != record.draw_sha256:
            raise BundleError(f"{self.path}: the draw of {release} is not the one that was charged")
        return noisy

    def evaluate(self, release: str, points: Mapping[str, ArrayLike]) -> Columns:
        """Evaluate a density, function or machine at points: one array for each of its columns.

        Returns columns of the values, their ``standard_error`` and their intervals.
        """
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
        """Draw any number of synthetic records, as for a synthetic table of the bundle.

        They cost no privacy, and hold no more information than the published ones.  The same number
        always gives the same records.  Those of a plan with ``linked`` are wide: one for each unit.
        """
        found = next((s for s in self.plan.synthesis if s.name == table), None)
        if found is None:
            names = [synthesis.name for synthesis in self.plan.synthesis]
            raise InputError(
                f"{self.path}: has no synthetic table {table!r}; its synthetic tables: {names}"
            )
        if not isinstance(rows, int | np.integer) or isinstance(rows, bool) or rows < 1:
            raise InputError(f"{table}: rows must be a positive whole number, not {rows!r}")
        records = synthetic_records(self.plan, found, self.draw, rows)
        return dict(records.table(table, self.plan.record_columns).columns)

    def implicates(self, table: str) -> list[Columns]:
        """The implicates of a synthetic table, each as many records as the survey has.

        Analyse each as if it were the survey, and ``combine`` the estimates and their variances.
        """
        columns = self.table(f"microdata/{table}.implicates")
        which = columns.pop(IMPLICATE)
        return [
            {name: values[which == each] for name, values in columns.items()}
            for each in np.unique(which)
        ]

    def best(self, table: str) -> Columns:
        """The cells of a table of counts, with the best estimates that all releases give together.

        Every release that counts some of its columns tells of them, in the same bins or others, at no
        cost in privacy; ``sources`` names these releases.  Columns ``estimate``, ``standard_error``,
        ``lower_90`` and ``upper_90`` (normal).
        """
        columns, found = self.table(table), self._joined(table)
        if found is None:
            raise InputError(f"{table}: its numbers cannot be combined with those of others")
        described = {name for axis in found.axes for name in cell_names(axis)}
        cells = {name: values for name, values in columns.items() if name in described}
        names = ("estimate", "standard_error", *ENDS)
        return cells | dict(zip(names, found.columns, strict=True))

    def sources(self, table: str) -> list[str]:
        """The releases from which the numbers of ``best``, ``total`` and ``share`` come."""
        found = self._joined(table)
        return [self._record_of(table).name] if found is None else list(found.sources)

    def total(self, table: str, weights: Weights = None) -> Estimate:
        """The number of records in some cells of a table of counts, with the exact standard error.

        It is the best estimate that all releases of the bundle give together, so that two tables give
        one answer (``best``, ``sources``).  ``weights``: true, false or a number for each row, or a
        function of the columns; all rows by default.  The error includes the covariance of cells, which
        arises where tables were made to agree.
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

        ``part`` and ``of``: true or false for each row.  With P the noisy sum over rows in both, W
        that over ``of``, and R = P / W, the variance is that of the sum with weights
        part * of - R * of, divided by W^2 (delta method, first order), which includes the covariance
        of P and W.  Where W is near zero the share has no standard error, but Fieller's 90% set, cut to
        [0, 1] (``tasks.bundle.estimates.Quotient``).  Raises ``InputError`` for weights other than true
        and false.
        """
        columns, whole = self.table(table), self.total(table, of)
        factors, chosen = (_factors(table, columns, weights) for weights in (of, part))
        if not np.isin([factors, chosen], (0, 1)).all():
            raise InputError(
                f"{table}: a share needs true or false for each row, not other weights; for a mean,"
                " divide the totals of two releases, or divide by a public number"
            )
        chosen = factors * chosen
        if np.array_equal(chosen, factors):
            return Estimate(1.0, 0.0, whole.draws)
        if whole.near_zero:
            some, rest = (self._sum(table, columns, each) for each in (chosen, factors - chosen))
            squares = [each.standard_error**2 for each in (some, whole, rest)]
            quotient = Quotient.of(some, whole, (squares[0] + squares[1] - squares[2]) / 2)
            return quotient.within(0.0, 1.0)
        value = self.total(table, chosen).value / whole.value
        error = self._sum(table, columns, chosen - value * factors).standard_error
        return Estimate(value, error / abs(whole.value), whole.draws)

    def fit(self, formula: str, family: str = "gaussian") -> Fit:
        """A linear, logistic (``binomial``) or Poisson model, with errors that hold.

        ``formula``: as in R, over columns of the survey, such as ``"affairs ~ religious + educ"``.
        Linear models come from a release of ``moments`` that has their columns, if there is one.  Others
        come from noisy tables where these hold what is needed, and from synthetic records for the rest.
        Standard errors are split into sampling and privacy.  Raises ``InputError`` where columns that
        the model relates were not measured together.
        """
        found = fit_moments(self.plan, lambda of: of.points(self.draw(of.name)), formula, family)
        if found:
            return found[1]
        made = fit(self.evidence, formula, family)
        return replace(made, notes=(*made.notes, *self._means_of(formula)))

    def _means_of(self, formula: str) -> list[str]:
        """Which releases are means of the response by some of the terms: they are more precise."""
        response, _, terms = (part.replace("`", "").strip() for part in formula.partition("~"))
        return [
            f"the release {release.name} measures the mean of {response}"
            f"{' by ' * bool(by) + ', '.join(by)} itself: table({release.name!r}), whose"
            " intervals are of the noise alone"
            for release in self.plan.built.values()
            if isinstance(release, Mean | RatioMean)
            for *by, column in [release.domain.names]
            if column == response and all(name in terms for name in by)
        ]

    def correlation(self, one: str, other: str) -> Coefficient:
        """Pearson's correlation of two columns of numbers, with errors from sampling and privacy."""
        return correlation(self.evidence, one, other)

    def independence(self, one: str, other: str) -> Independence:
        """A chi-square test that two columns are independent, by sampling and noise together."""
        return independence(self.evidence, one, other)

    def quantile(self, column: str, level: float) -> Quantile:
        """A quantile of a column of numbers, with an interval that holds sampling and noise."""
        return quantile(self.evidence, column, level)

    @cached_property
    def evidence(self) -> Evidence:
        """What ``fit`` starts from: tables that agree, and records that follow them."""
        parts = [part for bundle in (self, *self.earlier) for part in bundle._parts]
        return evidence_of(self.plan, parts, self.draw)

    def _sum(self, table: str, columns: Columns, factors: Floats) -> Estimate:
        record, found = self._record_of(table), self._joined(table)
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

    def _joined(self, table: str) -> Joined | None:
        """What all releases of this and of earlier bundles say of a table together."""
        if table not in self._joins:
            record = self._record_of(table)
            release = self.plan.built[record.name]
            if isinstance(release, TableOfCounts):
                domain = self._domains[table]
                self._joins[table] = join(f"{table}: ", domain, release, self._all_parts)
            else:
                self._joins[table] = None
        return self._joins[table]

    @cached_property
    def _domains(self) -> dict[str, Domain]:
        """The columns of each table of counts."""
        several = [r for r in self.plan.built.values() if isinstance(r, TableOfCounts)]
        return {release.table_name(d): d for release in several for d in release.domains_of(None)}

    @cached_property
    def _joins(self) -> dict[str, Joined | None]:
        return {}

    @cached_property
    def _parts(self) -> list[DrawnRelease]:
        """Everything that counts, as it was measured."""
        draws = {name: self.draw(name) for name in self.plan.built}
        return parts_of(self.manifest.release_id, self.plan.built, draws)

    @cached_property
    def _all_parts(self) -> list[DrawnRelease]:
        """Those of this bundle, of the earlier ones and of theirs, each draw once."""
        found: dict[tuple[str, str, str], DrawnRelease] = {}
        for part in chain(self._parts, *(bundle._all_parts for bundle in self.earlier)):
            found.setdefault((part.bundle, part.name, part.draw), part)
        return list(found.values())

    def _explain_absence(self, table: str) -> str:
        """Why cells are missing from a table, in the release's own words."""
        facts = self._record_of(table).facts
        threshold = f" It is {facts['threshold']:,}." if "threshold" in facts else ""
        return f"{facts.get('absent_cells', '')}{threshold}"

    def _describe(self, columns: Columns) -> str:
        """The type and some values of each of the survey's columns in a table."""
        sides = {
            f"{name}{end}"
            for name in self.plan.described_columns
            for end in ("", "_from", "_to", GROUP)
        }
        described = []
        for name in (name for name in columns if name in sides):
            values = np.unique(np.ma.compressed(columns[name])).tolist()
            kind = type(values[0]).__name__ if values else "null"
            more = ", ..." if len(values) > MOST_NAMED else ""
            described.append(f"{name} ({kind}): {', '.join(map(repr, values[:MOST_NAMED]))}{more}")
        return "; ".join(described)

    def _record_of(self, table: str) -> ReleaseRecord:
        if table not in self._records:
            raise InputError(f"{table}: is not a table of a release, so it has no error statement")
        return self._records[table]

    @cached_property
    def _records(self) -> dict[str, ReleaseRecord]:
        """The release of each of its tables."""
        return {table.name: record for record in self.manifest.releases for table in record.tables}


def open_bundle(path: str | Path, earlier: Sequence[BundleReader] = ()) -> BundleReader:
    """Open a published bundle and check every file in it.

    Args:
        path: The bundle's folder, DATASET/RELEASE_ID.
        earlier: Opened bundles of the same private table, whose counts improve those of this one, with
            their own earlier ones; each draw counts once.

    Returns:
        The bundle, with methods for its tables, functions, synthetic records and sums.

    Raises:
        InputError: The folder is no bundle, or an earlier bundle is not opened or of another dataset.
        BundleError: The manifest is not valid, or a file was changed, added or removed after
            publication.

    Examples:
        bundle = open_bundle("published/fair-1978/demo")
        bundle.total("all-pairs.age.affairs", lambda t: t["age"] <= 22)
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    verify_files(folder, manifest)
    if not (
        isinstance(earlier, Sequence) and all(isinstance(each, BundleReader) for each in earlier)
    ):
        raise InputError(f"{folder}: earlier must be a list of opened bundles, [open_bundle(...)]")
    for bundle in earlier:
        if bundle.manifest.dataset != manifest.dataset:
            raise InputError(
                f"{folder}: is of {manifest.dataset}, and {bundle.path} of {bundle.manifest.dataset};"
                " only bundles of one table can be joined"
            )
    return BundleReader(folder, manifest, tuple(earlier))


def _as_drawn(plan: Plan, records: list[ReleaseRecord]) -> Plan:
    """The plan as it was drawn: before ``optimise`` existed, all tables were measured alike."""
    events = {record.name: record.event for record in records}
    sections = [
        section.model_copy(update={"optimise": "alike"})
        if isinstance(section, MarginsSection | MicrodataSection)
        and section.optimise is None
        and plan.built[section.name].event.to_dict() != events.get(section.name)
        else section
        for section in plan.releases
    ]
    return plan if sections == plan.releases else plan.changed(releases=sections)


def _columns(table: pa.Table) -> Columns:
    return {name: _array(table[name]) for name in table.column_names}


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    null = column.is_null().to_numpy()
    if not null.any():
        return np.asarray(column.to_numpy())
    filled = column.fill_null("" if column.type == pa.string() else 0)
    return np.ma.masked_array(filled.to_numpy(), mask=null)


def _counts(table: str, columns: Columns) -> NDArray[Any]:
    """The most accurate unbiased counts of a table, (rows,)."""
    value = next((columns[name] for name in UNBIASED if name in columns), None)
    if value is None:
        raise InputError(f"{table}: is not a table of counts")
    return value


def _factors(table: str, columns: Columns, weights: Weights) -> Floats:
    """(rows,) finite weights; a row for which the weight is null does not count."""
    rows = _counts(table, columns).shape
    try:
        given = weights(columns) if callable(weights) else weights
    except KeyError as error:
        raise InputError(
            f"{table}: has no column {error.args[0]!r}; its columns: {list(columns)}; NAME_from and"
            " NAME_to are the ends of a binned column's bins"
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
