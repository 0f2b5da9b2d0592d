"""Tables of counts on the page: bars with intervals, heat maps, and a list of the rest."""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpcore.arrays import Booleans
from dpcore.domain.domain import Domain
from dpcore.estimates.joined import join
from dpcore.releases.abilities import Samplable
from dpcore.releases.counts.unit import RECORDS, Unit, tables_of_counts
from schemas.bundle.table_file import TableFile
from schemas.survey.columns import CategoricalColumn
from tasks.charts.bars import Bar, bars
from tasks.charts.chart import Axis
from tasks.charts.heat import heat_map
from tasks.charts.svg import percent, supported
from tasks.report.cells import Columns, CountTable, noisy, read_counts, sides_of
from tasks.report.parts import DataTable, Drawn, Figure, Source

MOST_FIGURES = 4
LARGEST_SIDE = 100
"""The most cells on a side of a legible heat map."""

LARGEST_CELLS = 15
LONG, SURE = 30, 4.0
"""In a heat map, or a chart of more than ``LONG`` bars, cells at the ends are left out if their counts
are below ``SURE`` standard errors."""

BELOW = "; intervals are for the exact numbers, which are never negative"
WARNINGS = ("absent_cells", "exact_counts", "outside", "totals")
"""Facts of a release that a reader needs to understand its numbers."""


def draw_counts(source: Source) -> Drawn:
    """Charts of a few tables of a release, and a list of all its tables."""
    files = source.record.tables
    shown = choose(files, [_names(source, file) for file in files], source.related)
    figures = [shape for file in shown for shape in figures_of(source, file)]
    notes = warnings_of(source)
    if not any(file.rows for file in files):
        notes.append(f"No {source.unit.number} is published: all were at most the threshold.")
    tables = [list_of_tables(source)] if len(files) > 1 else []
    if len(shown) < len(files):
        notes.append(
            f"{len(shown)} of {len(files)} tables are drawn here; a list names all of them."
        )
    return Drawn(figures, notes, tables)


def warnings_of(source: Source) -> list[str]:
    """Notes that a reader needs to understand the release's numbers."""
    return [str(source.record.facts[key]) for key in WARNINGS if key in source.record.facts]


def list_of_tables(source: Source) -> DataTable:
    """All tables of a release and their files."""
    files = source.record.tables
    return DataTable(
        f"All {len(files)} tables of this release",
        ("Columns", "Cells", "File"),
        [(" × ".join(_names(source, f)), f"{f.rows:,}", _link(f)) for f in files],
    )


def _link(file: TableFile) -> Markup:
    path = file.csv if file.csv_sha256 else file.path
    return Markup('<a href="{}">{}</a>').format(quote(path), file.place)


def choose(
    files: list[TableFile],
    names: list[list[str]],
    related: Mapping[frozenset[str], float] = MappingProxyType({}),
) -> list[TableFile]:
    """Choose tables for the page: first those whose relation exceeds noise most, then tables that show
    new columns. They keep the plan's order."""
    # If no table is legible, the page lists the largest cells of the first one.
    legible = [i for i, file in enumerate(files) if file.rows <= LARGEST_SIDE**2] or [0]
    chosen: list[int] = []
    while len(chosen) < min(MOST_FIGURES, len(legible)):
        seen = {name for i in chosen for name in names[i]}
        rest = [i for i in legible if i not in chosen]
        strength = {i: related.get(frozenset(names[i]), 0.0) for i in rest}
        chosen.append(max(rest, key=lambda i: (strength[i], len(set(names[i]) - seen), -i)))
    return [files[i] for i in sorted(chosen)]


def _names(source: Source, file: TableFile) -> list[str]:
    return sides_of(file.columns, source.plan.described_columns)


def figures_of(source: Source, file: TableFile) -> list[Figure]:
    """The charts of one table."""
    table, columns = source.read(file), source.plan.described_columns
    if not file.rows:
        return []
    if file.rows > LARGEST_SIDE**2:
        return [largest(table, columns, file.place, source.unit)]
    counts = replace(read_counts(table, columns, source.unit), whole=_whole(source))
    dense = file.rows == math.prod(counts.shape)
    if len(counts.names) == 1:
        return [one_way(counts, file.place)]
    if dense and len(counts.names) == 2 and max(counts.shape) <= LARGEST_SIDE:
        return [two_way(counts, file.place, columns)]
    if len(source.release.domains) == 1 and (implied := noisy_columns(source)):
        return [one_way(column, file.place) for column in implied]
    return [largest(table, columns, file.place, source.unit)]


def _whole(source: Source) -> float | None:
    """The number of all records, the denominator of shares, if it is public."""
    public = source.plan.adjacency.public_rows and not source.unit.weighted
    return float(source.plan.rows) if public else None


def one_way(counts: CountTable, path: str) -> Figure:
    """A figure of one column: a bar and an interval for each cell."""
    title = counts.title
    says = f"Each bar is one {counts.number}, each line its 90% interval, {counts.plus_minus}"
    if np.any(counts.value < counts.lower):
        says += f"; the interval is for the exact {counts.unit.number}, which is never negative"
    numbers, drawn = count_table(counts, path), bars_of(counts)
    if len(drawn) > LONG:
        clear = counts.value > SURE * counts.error
        drawn = [drawn[i] for i in _between_empty_ends(clear, counts.keys[0][-1] is None, 1)]
    if left := len(numbers.rows) - len(drawn):
        says += f"; {left:,} cells below and above these may be empty, and are only in the table"
    return Figure(title, says, bars(drawn, counts.unit.things), numbers)


def _between_empty_ends(clear: Booleans, null: bool, more: int = 0) -> list[int]:
    """The cells from the first to the last clear count, ``more`` at each end, and null if it is last."""
    size = len(clear) - null
    (places,) = np.nonzero(clear[:size])
    if not len(places):
        return [*range(len(clear))]
    shown = range(max(int(places[0]) - more, 0), min(int(places[-1]) + 1 + more, size))
    return [*shown, *range(size, len(clear))]


def two_way(counts: CountTable, path: str, columns: Columns) -> Figure:
    """A figure of two columns: a heat map, hatched where zero lies inside the interval. Numbers at the
    ends without a clear count are left out."""
    title = f"{counts.unit.things.capitalize()} by {' and '.join(counts.quoted)}"
    clear = counts.grid(counts.value > SURE * counts.error)
    shown = [
        [*range(len(side))]
        if isinstance(columns[name], CategoricalColumn)
        else _between_empty_ends(np.any(clear, axis=1 - i), counts.keys[i][-1] is None)
        for i, (name, side) in enumerate(zip(counts.names, counts.sides, strict=True))
    ]
    drawn = np.ix_(*shown)
    value, doubtful = counts.grid(counts.value)[drawn], counts.grid(counts.lower <= 0)[drawn]
    says = (
        f"The scale of shades is below the map. Each {counts.number} has a 90% interval of"
        f" {counts.plus_minus}. Hatched cells may be empty ({doubtful.sum():,} of {doubtful.size:,})"
    )
    if left := sum(counts.shape) - sum(value.shape):
        says += (
            f". Rows and columns at the ends without a count clearly above zero ({left:,}) are only in"
            " the table"
        )
    rows, across = (
        Axis(called, [side[i] for i in places])
        for called, side, places in zip(counts.titles, counts.sides, shown, strict=True)
    )
    return Figure(title, says, heat_map(value, rows, across, doubtful), count_table(counts, path))


def largest(
    table: Mapping[str, NDArray[Any]], columns: Columns, path: str, unit: Unit = RECORDS
) -> Figure:
    """A figure of the largest counts of a table, if a chart cannot show the whole table."""
    order = np.argsort(-noisy(table), kind="stable")[:LARGEST_CELLS]
    counts = read_counts({n: values[order] for n, values in table.items()}, columns, unit)
    title = f"The {len(order):,} largest of {len(noisy(table)):,} {unit.numbers} in {path}"
    says = (
        f"{counts.title}, with 90% intervals of {counts.plus_minus}"
        + "; the largest of many noisy numbers tend to be too large"
        * (len(order) < len(noisy(table)))
    )
    rows = [replace(bar, label=f"no. {i}") for i, bar in enumerate(bars_of(counts), 1)]
    plain = count_table(counts, path)
    numbered = [(f"no. {i}", *row[-2:], *row[:-2]) for i, row in enumerate(plain.rows, 1)]
    header = ("Bar", *plain.header[-2:], *plain.header[:-2])
    described = DataTable(plain.caption, header, numbered)
    return Figure(title, says, bars(rows, counts.unit.things), described, needed=True)


def bars_of(counts: CountTable) -> list[Bar]:
    """One bar for each cell."""
    ends = zip(counts.value.tolist(), counts.lower.tolist(), counts.upper.tolist(), strict=True)
    return [Bar(counts.cell(i), *numbers) for i, numbers in enumerate(ends)]


def noisy_columns(source: Source) -> list[CountTable]:
    """The noisy counts of single columns that a release implies, if their errors are known. If other
    releases contribute, the counts are estimated from all releases, like the tables, so that readers do
    not see two numbers for the same count.
    """
    noisy, release, found = source.noisy, source.of_period, []
    if not isinstance(release, Samplable):
        return []
    columns, unit = source.plan.described_columns, source.unit
    own = tables_of_counts(source.plan.of_period).get(source.record.name)
    for axis in release.domain.axes:
        if axis.size > LARGEST_SIDE:
            continue
        value, error = release.supported_margin(noisy, (axis.name,)) or (None, math.nan)
        if value is None or not math.isfinite(error):
            continue
        counts = replace(
            CountTable.of_axis(axis, value, error, columns, unit), whole=_whole(source)
        )
        alone, counted = Domain((axis,)), [*source.counted]
        best = join("", alone, own, counted) if own is not None else None
        if best is not None and len(best.sources) > 1:
            value, errors, lower, upper = best.columns
            number = f"{unit.number} estimated from all releases"
            counts = replace(
                counts, value=value, error=errors, lower=lower, upper=upper, number=number
            )
        found.append(counts)
    return found


def count_table(counts: CountTable, path: str) -> DataTable:
    """The numbers in the chart of the table at ``path``, with shares if the total is public."""
    shares = ("Share of all records (90% interval)",) if counts.whole else ()
    rows = []
    for i in range(len(counts.value)):
        numbers = [float(each[i]) for each in (counts.value, counts.lower, counts.upper)]
        # With an error of at least 10, counts are shown without decimals.
        value, low, high = supported(numbers, max(float(counts.error[i]), 10.0))
        row = [*(axis[i] for axis in counts.labels), value, f"{low} to {high}"]
        rows.append([*row, percent(*(n / counts.whole for n in numbers))] if counts.whole else row)
    header = (*counts.titles, counts.number.capitalize(), "90% interval", *shares)
    caption = counts.title + BELOW * bool(np.any(counts.value < counts.lower))
    return DataTable(caption, header, rows, path)
