"""The parts of a report, before they become a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import Markup
from numpy.typing import NDArray

from dpcore.estimates.joined import DrawnRelease
from dpcore.line.statistic import Noisy
from dpcore.releases.abilities import DrawsSetting, drawn_of_period, of_period
from dpcore.releases.base import Release
from dpcore.releases.counts.unit import Unit
from schemas.bundle.draws import noisy_of
from schemas.bundle.manifest import ReleaseRecord
from schemas.bundle.table_file import TableFile
from schemas.plan import Plan
from tasks.charts.chart import Panel, chart

MOST_ROWS = 120
"""Tables of up to this many rows are shown whole."""

FIRST_ROWS = 60
"""The number of rows of a longer table that the page shows; the others are in another file of the
bundle."""


@dataclass(frozen=True)
class DataTable:
    """A table for reading: the first cell of a row is its heading.

    ``place``: the file with the rows that are not shown.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    place: str = "manifest.json"

    @property
    def shown(self) -> Sequence[Sequence[str]]:
        return self.rows if len(self.rows) <= MOST_ROWS else self.rows[:FIRST_ROWS]

    @property
    def hidden(self) -> int:
        """The number of rows that the page leaves out."""
        return len(self.rows) - len(self.shown)


@dataclass(frozen=True)
class Figure:
    """A chart with its title, an explanation of how to read it, and its numbers as a table.

    ``needed``: the chart cannot be read without the table.
    """

    title: str
    says: str
    panels: Sequence[Panel]
    table: DataTable | None = None
    needed: bool = False

    @property
    def picture(self) -> Markup:
        return chart(self.title, self.says, self.panels)


@dataclass(frozen=True)
class Drawn:
    """The charts, tables and notes on one release or synthetic table.

    ``more``: folded charts, shown with the ``tables`` and with notes on ``details``.
    """

    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    tables: Sequence[DataTable] = ()
    more: Sequence[Figure] = ()
    details: Sequence[str] = ()


@dataclass(frozen=True)
class Source:
    """One release of a bundle, as its charts need it: everything here is public.

    ``related``: by the names of two columns, the strength of their relation beyond noise, if any;
    ``counted``: the draws of all releases, from which tables are estimated jointly.
    """

    plan: Plan
    record: ReleaseRecord
    bundle: Path
    related: Mapping[frozenset[str], float] = field(default_factory=dict)
    counted: Sequence[DrawnRelease] = ()

    @property
    def release(self) -> Release:
        return self.plan.built[self.record.name]

    @property
    def charted(self) -> Any:
        """The release, for the function that draws its chart: every release with this chart has the
        members that the function reads."""
        return self.release

    @property
    def of_period(self) -> Release:
        """The release from which records are drawn (``abilities.of_period``)."""
        return of_period(self.release)

    @property
    def unit(self) -> Unit:
        """Words for the counted unit."""
        return Unit(self.release.adjacency.weighted)

    @property
    def noisy(self) -> Noisy:
        """The noisy statistic, as a draw of ``of_period``."""
        return drawn_of_period(self.release, noisy_of(self.read(self.record.draw)))

    def read(self, file: TableFile) -> Mapping[str, NDArray[Any]]:
        """The columns of one table of the release."""
        return read_columns(self.bundle, file)


def setting_drawn(source: Source) -> list[str]:
    """Notes on a setting that was drawn from the records, and on its cost; otherwise empty."""
    release = source.release
    if not isinstance(release, DrawsSetting):
        return []
    setting, facts = release.setting, source.record.facts
    choice, values = facts[f"{setting}_choice"], facts.get("bandwidths", facts.get(setting))
    each = values.items() if isinstance(values, Mapping) else [("", values)]
    shown = ", ".join(f"{value:.3g}{name and f' of {name}'}" for name, value in each)
    costs = {name: float(Fraction(amount)) for name, amount in choice["spent"].items()}
    spent = ", ".join(f"{name} = {amount:.3g}" for name, amount in costs.items() if amount)
    return [
        f"The {setting} was drawn from the records (`{choice['rule']}`): {shown}. The choice spent"
        f" {spent}."
    ]


def read_columns(bundle: Path, file: TableFile) -> Mapping[str, NDArray[Any]]:
    """The columns of a table without its replicates, as arrays. Nulls are None, or NaN among numbers."""
    return _columns(
        pq.read_table(bundle / file.path, columns=list(file.columns), filters=file.filters)
    )


def read_records(bundle: Path, file: TableFile) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Yield the columns of synthetic records, in blocks as they were written."""
    with pq.ParquetFile(bundle / file.path) as parquet:
        for group in range(parquet.num_row_groups):
            yield _columns(parquet.read_row_group(group))


def _columns(table: pa.Table) -> Mapping[str, NDArray[Any]]:
    return {
        name: np.asarray(table[name].to_numpy(zero_copy_only=False)) for name in table.column_names
    }
