"""A published bundle as data frames, and answers with their errors.

Tables need only numpy, pandas and pyarrow.  Methods that compute from noisy statistics (``total``,
``fit``, ``sample`` and so on) use ``tasks.bundle.reader``, which needs more packages; an error names
missing ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpcore.errors import InputError
from dprelease.frames import frame_of, frame_of_columns
from tasks.bundle.digests import invalid_manifest, manifest_document, verify_digests
from tasks.bundle.listing import ListedTable, read_table, tables_of

if TYPE_CHECKING:
    from dpcore.estimates.estimate import Estimate
    from dpcore.estimates.model import Coefficient
    from dpcore.estimates.questions import Independence, Quantile
    from tasks.bundle.reader import BundleReader
    from tasks.bundle.weights import Weights
    from tasks.inference.fit import Fit

READER = ("scipy", "pydantic", "pyyaml", "formulaic", "jinja2")
"""Packages that the reader needs in addition to numpy, pandas and pyarrow."""


@dataclass(frozen=True, repr=False)
class Bundle:
    """A published bundle, checked when it was opened.

    Methods raise ``InputError`` if a name, a weight, a formula or a number does not fit the bundle.
    """

    path: Path
    manifest: Mapping[str, Any]
    """The facts in ``manifest.json``."""

    @cached_property
    def tables(self) -> Mapping[str, ListedTable]:
        """Every table by its name; names of synthetic tables and models include their folder."""
        return tables_of(self.manifest)

    def table(self, name: str, replicates: bool = False) -> pd.DataFrame:
        """A table as a data frame; with ``replicates``, also the columns to compute errors from."""
        return frame_of(read_table(self.path, self.tables, name, replicates))

    def best(self, table: str) -> pd.DataFrame:
        """A table of counts with the best estimates from all releases."""
        return frame_of_columns(self.reader.best(table))

    def sources(self, table: str) -> list[str]:
        """The releases from which the numbers of ``best``, ``total`` and ``share`` come."""
        return self.reader.sources(table)

    def total(self, table: str, weights: Weights = None) -> Estimate:
        """The number of records in some cells of a table of counts, with its standard error.

        ``weights``: true, false or a number for each row, or a function of the table as a pandas
        DataFrame, such as ``lambda t: t["job"].isna()``; all by default.
        """
        return self.reader.total(table, _weights(weights))

    def share(self, table: str, part: Weights, of: Weights = None) -> Estimate:
        """Among the records in the cells ``of`` (all by default), the share in the cells ``part``."""
        return self.reader.share(table, _weights(part), _weights(of))

    def evaluate(self, release: str, points: Mapping[str, Any]) -> pd.DataFrame:
        """A density, function or machine at points, with intervals."""
        return frame_of_columns(self.reader.evaluate(release, points))

    def sample(self, table: str, rows: int) -> pd.DataFrame:
        """``rows`` synthetic records, made like the table; the same number gives the same records."""
        return frame_of_columns(self.reader.sample(table, rows))

    def implicates(self, table: str) -> list[pd.DataFrame]:
        """The implicates of a synthetic table, each with as many records as the survey."""
        return [frame_of_columns(each) for each in self.reader.implicates(table)]

    def fit(self, formula: str, family: str | None = None) -> Fit:
        """A linear, logistic (``binomial``) or Poisson model; its errors include privacy noise.

        By default ``family`` is the family of a measured model of this formula; otherwise ``binomial``
        for a response with two categories, and ``gaussian`` for any other.
        """
        return self.reader.fit(formula, family)

    def correlation(self, one: str, other: str) -> Coefficient:
        """Pearson's correlation of two columns of numbers, with errors from sampling and privacy."""
        evidence = self.reader.evidence
        from dpcore.estimates.questions import correlation

        return correlation(evidence, one, other)

    def independence(self, one: str, other: str) -> Independence:
        """A chi-square test of independence of two columns; it allows for sampling and privacy noise."""
        evidence = self.reader.evidence
        from dpcore.estimates.questions import independence

        return independence(evidence, one, other)

    def quantile(self, column: str, level: float) -> Quantile:
        """A quantile of a column of numbers; its interval covers sampling and privacy noise."""
        evidence = self.reader.evidence
        from dpcore.estimates.questions import quantile

        return quantile(evidence, column, level)

    @cached_property
    def reader(self) -> BundleReader:
        """The bundle opened by ``tasks.bundle.reader``, with its plan and its draws.

        Raises ``InputError`` if a package that it needs is not installed.
        """
        try:
            from tasks.bundle.reader import BundleReader
        except ModuleNotFoundError as missing:
            raise InputError(
                f"{self.path}: computing from a bundle needs {missing.name}, which is not installed;"
                f" run: pip install {' '.join(READER)}"
            ) from None
        return BundleReader.open(self.path)

    def _lines(self) -> list[tuple[str, str, str]]:
        return [
            (name, f"{listed.rows:,}", ", ".join(listed.columns))
            for name, listed in self.tables.items()
        ]

    def __repr__(self) -> str:
        heading = f"{self.manifest['title']}\n{self.path}: its tables, and their rows"
        wide = max((len(name) for name in self.tables), default=0)
        return "\n".join([heading, *(f"  {n:{wide}} {r:>10}" for n, r, _ in self._lines())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(n)}</td><td>{r}</td><td>{escape(c)}</td></tr>"
            for n, r, c in self._lines()
        )
        return (
            f"<p><b>{escape(self.manifest['title'])}</b><br>"
            f"{escape(self.manifest['guarantee']['statement'])}</p>"
            f"<table><tr><th>table</th><th>rows</th><th>columns</th></tr>{rows}</table>"
        )


def open_bundle(path: str | Path) -> Bundle:
    """Open a published bundle and check the digest of every file in it.

    Args:
        path: The bundle's folder, DATASET/RELEASE_ID.

    Raises:
        InputError: The folder is not a bundle.
        BundleError: The manifest is not valid, or a file was changed, added or removed after
            publication.
    """
    folder = Path(path)
    bundle = Bundle(folder, manifest_document(folder))
    verify_digests(folder)
    try:
        repr(bundle)  # reads every key that the listing needs, so that a wrong manifest fails here
    except (AttributeError, KeyError, TypeError, ValueError):
        raise invalid_manifest(folder) from None
    return bundle


def _weights(weights: Weights) -> Any:
    """The weights, or the function that gives them, without pandas; nulls are masked."""

    def masked(given: Any) -> Any:
        if not isinstance(given, pd.Series):
            return given
        return np.ma.masked_array(given.to_numpy(dtype=object), given.isna().to_numpy())

    if not callable(weights):
        return masked(weights)
    return lambda columns: masked(weights(frame_of_columns(columns)))
