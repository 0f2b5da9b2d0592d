"""Opens a published bundle: its tables, functions at any points, more records, sums with errors.

    from tasks.bundle.reader import open_bundle

    bundle = open_bundle("published/fair-1978/demo")              # checks every digest
    bundle.evaluate("affairs-density", {"affairs": [0.5, 2.0]})   # with interval and band
    bundle.sample("respondents", 100_000)                         # as many records as wanted
    young = bundle.total("all-pairs.age.affairs", lambda t: t["age"] <= 22)
    young.value, young.standard_error, young.interval
    bundle.share("all-pairs.age.affairs", lambda t: t["age"] <= 22)          # of all records

A bundle contains its plan and its noisy statistics, from which the reader computes the same results as
dprelease itself.  It needs pyarrow, but neither Prefect nor a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dpcore.arrays import Floats
from dpcore.errors import InputError
from dpcore.estimates.combine import combine
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.model import Coefficient
from dpcore.estimates.questions import Independence, Quantile, correlation, independence, quantile
from dpcore.model_formula import ModelFormula
from dpcore.releases.abilities import Evaluable
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.numbers.ratio_mean import RatioMean
from schemas.plan.synthesis import IMPLICATE
from tasks.bundle.counts import OpenBundle
from tasks.bundle.listing import Columns
from tasks.bundle.records import synthetic_records
from tasks.bundle.verify import read_manifest, verify_files
from tasks.inference.fit import Fit
from tasks.inference.measured import meant, wider

__all__ = ["BundleReader", "Columns", "combine", "open_bundle"]


@dataclass(frozen=True)
class BundleReader(OpenBundle):
    """A published bundle, checked when it was opened."""

    def replicates(self, name: str) -> Floats:
        """(number, rows) replicates of a table's unbiased column; (0, rows) where it has none."""
        found = self.listing.read(name, columns=False, replicates=True)
        columns = [found[each].to_numpy() for each in found.column_names]
        return np.array(columns).reshape(-1, self.tables[name].rows)

    def evaluate(self, release: str, points: Mapping[str, ArrayLike]) -> Columns:
        """Evaluate a density, function or machine at points, given as one array for each of its columns.

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

        They cost no privacy, and contain no more information than the published records. The same number
        always gives the same records. With ``linked`` in the plan, each record is a whole unit.
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
        """The implicates of a synthetic table, each as many records as the survey has.

        Analyse each as if it were the survey, and ``combine`` the estimates and their variances.
        """
        columns = self.table(f"microdata/{table}.implicates")
        which = columns.pop(IMPLICATE)
        return [
            {name: values[which == each] for name, values in columns.items()}
            for each in np.unique(which)
        ]

    def fit(self, formula: str, family: str | None = None) -> Fit:
        """A linear, logistic (``binomial``) or Poisson model; its errors include privacy noise.

        ``formula``: as in R, over columns of the survey, such as ``"affairs ~ religious + educ"``.
        If the plan measures the model (kind ``model``), that release answers, and ``family`` is not
        needed. Otherwise the default is logistic for a response of two categories, else linear. Linear
        models come from a release of ``moments`` with all their columns, if there is one. All others are
        fitted to noisy tables, and to synthetic records for everything else they need. Errors are split
        into sampling and privacy errors; a note says how much narrower the intervals of a measured model
        would be. Raises ``InputError`` if columns that the model relates were not measured together.
        """
        formula, family = meant(self.plan, formula, family)
        name, made = self.drawn.fit(formula, family)
        source = self.plan.of_period[name]
        if isinstance(source, MeasuredModel):
            return made
        if not isinstance(source, Moments):
            made = replace(made, notes=(*made.notes, *self._means_of(formula)))
        return replace(made, notes=(*made.notes, *wider(self.plan, name, made)))

    def _means_of(self, formula: str) -> list[str]:
        """Notes on releases that measure means of the response by some of the terms, more precisely."""
        try:
            read = ModelFormula.read(formula)
        except ValueError:  # a formula that is not valid in a plan
            return []
        response, terms = read.response.strip("`"), read.names[1:]
        return [
            f"the release {release.name} measures the mean of {response}"
            f"{' by ' * bool(by) + ', '.join(by)} itself: table({release.name!r}), with"
            " intervals for privacy noise only"
            for release in self.plan.built.values()
            if isinstance(release, Mean | RatioMean)
            for *by, column in [release.domain.names]
            if column == response and all(name in terms for name in by)
        ]

    def correlation(self, one: str, other: str) -> Coefficient:
        """Pearson's correlation of two columns of numbers, with errors from sampling and privacy."""
        return correlation(self.evidence, one, other)

    def independence(self, one: str, other: str) -> Independence:
        """A chi-square test that two columns are independent; it allows for sampling and noise."""
        return independence(self.evidence, one, other)

    def quantile(self, column: str, level: float) -> Quantile:
        """A quantile of a column of numbers; its interval covers sampling and privacy noise."""
        return quantile(self.evidence, column, level)

    @property
    def evidence(self) -> Evidence:
        """Consistent tables, and records that follow them, for the release with the most columns."""
        return self.drawn.evidence()


def open_bundle(path: str | Path) -> BundleReader:
    """Open a published bundle and check every file in it.

    Args:
        path: The bundle's folder, DATASET/RELEASE_ID.

    Returns:
        The bundle, with methods for its tables, functions, synthetic records and sums.

    Raises:
        InputError: The folder is no bundle.
        BundleError: The manifest is not valid, or a file was changed, added or removed after
            publication.

    Examples:
        bundle = open_bundle("published/fair-1978/demo")
        bundle.total("all-pairs.age.affairs", lambda t: t["age"] <= 22)
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    verify_files(folder, manifest)
    return BundleReader(folder, manifest)
