"""A few numbers on the page, each with its interval: counts, means, quantiles, drawn records."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.post.series import QUANTITIES
from dpcore.releases.table import ENDS, UNKNOWN
from schemas.survey.columns import Column
from tasks.charts.bars import Bar, bars
from tasks.charts.svg import figure, supported
from tasks.report.analyses import NUMBERS, estimate_row
from tasks.report.cells import (
    Columns,
    called,
    figure_of,
    measured,
    quoted,
    read_labels,
    row_labels,
    sides_of,
    written,
)
from tasks.report.parts import DataTable, Drawn, Figure, Source

MOST_SHARED = 12
SHARE = "share of the records"
COUNTED = ("noisy_count", "lower_90", "upper_90")


def draw_rows(source: Source) -> Drawn:
    """The first table as it is published, and the meaning of its columns; for kinds without a chart."""
    if not source.record.tables:
        return Drawn()
    file = source.record.tables[0]
    table = source.read(file)
    columns = [[_text(value) for value in table[name].tolist()] for name in file.columns]
    title = f"{source.plan.section(source.record.name).words}: {source.record.title}"
    if len(columns) and len(columns[0]) == 1:
        named = zip(file.columns, columns, strict=True)
        notes = [f"{file.descriptions[name]}: {value}." for name, (value,) in named]
        return Drawn((), [*notes, *(stated.statement for stated in file.uncertainty)])
    notes = [f"`{name}`: {file.descriptions[name]}." for name in file.columns]
    notes += [stated.statement for stated in file.uncertainty]
    rows = DataTable(title, [*file.columns], [*zip(*columns, strict=True)], file.place)
    return Drawn((), notes, [rows])


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}" if np.isfinite(value) else UNKNOWN
    return "" if value is None else str(value)


def draw_number(source: Source) -> Drawn:
    """Notes, and a bar with its interval for each row, from the first column with an error statement."""
    file = source.record.tables[0]
    if not file.uncertainty or not {"lower_90", "upper_90"} <= set(file.columns):
        return draw_rows(source)
    table, stated = source.read(file), [u.column for u in file.uncertainty]
    columns = [table[name].astype(float).tolist() for name in (stated[0], "lower_90", "upper_90")]
    described, about = source.plan.described_columns, file.about.get(stated[0])
    by = sides_of(table, described)
    column = described.get(about) if about else None
    unit = measured(about, described) if about and column else source.unit.things
    of = _by(about, by, described) if about and column else source.record.title
    title = f"{source.plan.section(source.record.name).words}: {of}"
    writes = {name: figure_of(described.get(file.about.get(name, ""))) for name in stated}
    write = writes[stated[0]]
    if by:
        labels = row_labels(table, by, described)
        groups = " and ".join(quoted(name, described) for name in by)
        says = f"Each bar is a group of {groups}, each line its 90% interval"
        notes = [
            f"{name.replace('_', ' ').capitalize()}: {file.descriptions[name]}." for name in stated
        ]
        if np.isnan(columns[0]).any():
            says += f"; a line without a bar has no value: {UNKNOWN}"
    else:
        labels, (value, lower, upper) = [source.record.name], (each[0] for each in columns)
        says = f"It is {write(value)}" if np.isfinite(value) else f"No value: {UNKNOWN}"
        says += f", with a 90% interval of {write(lower)} to {write(upper)}"
        notes = [
            f"{file.descriptions[name]}: {writes[name](float(table[name][0]))}."
            for name in stated
            if not np.isnan(table[name][0])
        ]
    rows = [Bar(*each) for each in zip(labels, *columns, strict=True)]
    header = (
        " and ".join(called(name, described) for name in by) or "release",
        f"{stated[0].replace('_', ' ')}, {unit}",
    )
    numbers = _numbers(title, header, rows, file.place, column)
    return Drawn([Figure(title, says, bars(rows, unit, write=write), numbers)], notes)


def _by(name: str, by: Sequence[str], columns: Columns) -> str:
    """A title: readers' name of a column, "by" other columns."""
    others = ", ".join(quoted(each, columns) for each in by)
    return quoted(name, columns) + (f" by {others}" if by else "")


def _numbers(
    title: str,
    header: tuple[str, str],
    rows: Sequence[Bar],
    place: str,
    column: Column | None = None,
) -> DataTable:
    """The numbers of the bars as a table; ``header``: titles of the rows and the values; ``column``: the
    column of the numbers."""
    shown = []
    for row in rows:
        texts = supported((row.value, row.lower, row.upper), (row.upper - row.lower) / 4)
        value, low, high = (written(column, text) for text in texts)
        if not np.isfinite(row.value):
            value = f"no value: {UNKNOWN}"
        elif row.value <= row.lower < row.upper:  # noise moved it outside the possible values
            value = f"at most {high}"
        shown.append([row.label, value, f"{low} to {high}"])
    return DataTable(f"{title}, in numbers", (*header, "90% interval"), shown, place)


def draw_levels(source: Source) -> Drawn:
    """One bar for each quantile, as long as its level, with the error of its rank."""
    table, names = source.read(source.record.tables[0]), source.release.domain.names
    labels, name = row_labels(table, names, source.plan.described_columns), names[-1]
    parts = source.release.domain.select(names[:-1]).size
    public = "rank_error_90" in table
    error = float(table["rank_error_90" if public else "rank_error_records_90"][0])
    half = error if public else error * parts / source.plan.rows
    shown = figure(error)
    if not public:
        of = source.plan.protection.records
        of = of if parts == 1 else "groups of equal size"
        shown += f" records (lines show this as a share of {of}"
        nullable = source.release.domain.axes[-1].nullable
        shown += ", and are too short if many records have no value)" if nullable else ")"
    rows = [
        Bar(label, level, max(level - half, 0.0), min(level + half, 1.0))
        for label, level in zip(labels, table["level"].tolist(), strict=True)
    ]
    title = f"Quantiles of {_by(name, names[:-1], source.plan.described_columns)}"
    says = (
        f"Bars: the requested levels, as shares of the records. Orange lines: the level"
        f" of each published value of {name} among the records is within {shown} of the requested one."
        " With 90% probability all lines are right at once; they do not include sampling error"
    )
    header = ", ".join(measured(each, source.plan.described_columns) for each in names), "level"
    numbers = _numbers(title, header, rows, source.record.tables[0].place)
    return Drawn([Figure(title, says, bars(rows, SHARE), numbers)])


def draw_cumulative(source: Source) -> Drawn:
    """One bar for each cell; its length is the share of the drawn records up to the cell's end."""
    table, name = source.read(source.record.tables[0]), source.release.domain.names[0]
    labels = read_labels(table, name, source.plan.described_columns)
    chosen = source.record.facts.get("chosen")
    parts = table["drawn"] if chosen is None else table["share"]
    shares = np.cumsum(parts) / max(float(parts.sum()), 1e-300)
    error = float(source.record.facts.get("distance_90", 0.0))
    rows = [
        Bar(label, share, max(share - error, 0.0), min(share + error, 1.0))
        for label, share in zip(labels, shares.tolist(), strict=True)
    ]
    title = f"Records up to each value of {name}"
    of = "the drawn records" if chosen is None else f"the records of {chosen!r}, which was chosen,"
    says = f"Each bar is the share of {of} up to the end of a cell" + (
        f"; with 90% probability no bar is off by more than {figure(error)}" if error else ""
    )
    return Drawn([Figure(title, says, bars(rows, SHARE))])


def draw_values(source: Source) -> Drawn:
    """The most frequent values of each column."""
    figures, described = [], source.plan.described_columns
    notes = [
        "Tables by roundness give the number of multiples of 5, 10, 50 and so on among the other"
        " values. Synthetic records have the shared values equally often and the same roundness."
    ]
    for file in source.record.tables:
        if not file.about:  # by roundness
            continue
        (name,), table = file.about, source.read(file)
        most = np.argsort(-table["noisy_count"], kind="stable")[:MOST_SHARED]
        columns = [table[each][most].astype(float).tolist() for each in COUNTED]
        labels = [
            written(described[name], f"{value:,.15g}") for value in table[name][most].tolist()
        ]
        rows = [Bar(*each) for each in zip(labels, *columns, strict=True)]
        title = f"Values of {quoted(name, described)} that many records share"
        if not rows:
            notes.append(f"{title}: no count stands out from the noise.")
            continue
        says = "Each bar is a value. With 90% probability all intervals are right at once"
        numbers = _numbers(title, (called(name, described), "records"), rows, file.place)
        figures.append(Figure(title, says, bars(rows, "records"), numbers))
    return Drawn(figures, notes)


def draw_estimates(source: Source) -> Drawn:
    """A list of estimates with errors and intervals. There is no chart, because their units differ."""
    file, rows = source.record.tables[0], []
    table = source.read(file)
    for i in range(len(table["estimate"])):
        what = str(table["term"][i]) if "term" in table else _statistic(table, i)
        quantity = str(table["quantity"][i]) if "quantity" in table else "period"
        if quantity != "period":
            what += f": {QUANTITIES[quantity]}"
        rows.append((what, *estimate_row(table, i)))
    caption = f"Estimates for the population, from {source.record.name}"
    notes = [each.statement for each in file.uncertainty]
    return Drawn(notes=notes, tables=[DataTable(caption, ("Quantity", *NUMBERS), rows, file.path)])


def draw_criteria(source: Source) -> Drawn:
    """The criteria for synthetic records, the measurements, and whether they were accepted."""
    record, (file, *_) = source.record, source.record.tables
    table = source.read(file)
    rows = [
        (
            str(table["criterion"][i]),
            figure(float(table["at_most"][i])),
            figure(float(table["measured"][i])),
            " to ".join(figure(float(table[end][i])) for end in ENDS),
            "yes" if met else "no",
        )
        for i, met in enumerate(table["met"].tolist())
    ]
    said = "All criteria are met" if record.facts["accepted"] else "Not all criteria are met"
    kept = "withheld" if record.facts["withheld"] else "published"
    header = ("Criterion", "At most", "Measured", "90% interval", "Met")
    caption = f"{said}: the synthetic table “{record.facts['records']}” is {kept}"
    notes = [f"{caption}.", *(each.statement for each in file.uncertainty)]
    return Drawn(notes=notes, tables=[DataTable(caption, header, rows, file.path)])


def _statistic(table: Mapping[str, NDArray[Any]], row: int) -> str:
    names = ("statistic", "column", "other", "category")
    statistic, column, other, category = (table[name][row] for name in names)
    within = {
        "mean": f" where {other} is {category}" if other else "",
        "share": f" = {category}",
        "covariance": f" and {other}",
    }
    return f"{statistic} of {column}{within.get(statistic, '')}"
