"""Synthetic tables on the page: their columns, compared with the noisy counts behind them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis
from dpcore.estimates.design import cells_of
from dpcore.releases.counts.unit import tables_of_counts
from schemas.bundle.manifest import SynthesisRecord
from schemas.plan.linked import NUMBER, PLACE
from tasks.charts.bars import bars
from tasks.charts.svg import figure
from tasks.report.cells import CountTable
from tasks.report.counts import bars_of, noisy_columns
from tasks.report.parts import DataTable, Drawn, Figure, Source, read_columns, read_records
from tasks.report.support import excluded_by_plan, how_supported, support_table

MOST_FIGURES = 60


def draw_synthetic(record: SynthesisRecord, source: Source) -> Drawn:
    """Synthetic counts of each column, compared with the counts of the underlying release."""
    # Some counts are of whether two columns are equal, which is no column of the records.
    known, counted = source.plan.record_columns, list[Floats]()
    noisy_tables = [each for each in noisy_columns(source) if each.names[0] in known]
    axes = {axis.name: axis for axis in source.of_period.domain.axes}
    for records in _records(record, source):
        again = [count_records(records[n.names[0]], axes[n.names[0]]) for n in noisy_tables]
        counted = [a + b for a, b in zip(counted, again, strict=True)] if counted else again
    public, drawn = source.of_period.adjacency.public_rows, max(record.file.rows, 1)
    compared = [
        (noisy, counts * ((source.plan.rows if public else float(noisy.value.sum())) / drawn))
        for noisy, counts in zip(noisy_tables, counted, strict=True)
    ]
    table = next(each for each in source.plan.synthesis if each.name == record.name)
    release = table.source(source.plan.of_period)
    supported = read_columns(source.bundle, record.support)
    listing = support_table(supported, record.support.path)
    warnings = [*excluded_by_plan(supported), record.warning]
    notes = [support(source), how_supported(supported, records, release.follows)]
    notes += _notes(record, source)
    if not compared:
        return Drawn((), warnings, [listing], details=notes)
    differences = DataTable(
        f"Distance between the synthetic counts and the noisy {source.unit.numbers}, by column",
        ("Column", "Largest difference", "90% interval of a noisy number"),
        [
            (n.names[0], figure(round(float(np.abs(c - n.value).max()))), n.plus_minus)
            for n, c in compared
        ],
    )
    figures = [_comparison(*pair) for pair in compared[:MOST_FIGURES]]
    return Drawn((), warnings, [differences, listing], figures, notes)


def _notes(record: SynthesisRecord, source: Source) -> list[str]:
    """Notes on what the records follow, and on the scale of their counts."""
    notes = []
    if record.implicates and record.spread:
        notes.append(f"{record.implicates.path}: {record.rules} ({record.spread.path}.)")
    if not source.of_period.adjacency.public_rows:
        notes.append(
            f"Synthetic counts are rescaled to the sum of the noisy {source.unit.numbers}."
        )
    elif record.file.rows != source.plan.rows:
        factor = figure(source.plan.rows / max(record.file.rows, 1))
        notes.append(
            f"Synthetic counts are multiplied by {factor}, to be comparable with"
            f" {source.plan.rows:,} records."
        )
    if record.followed:
        notes.append(
            f"The records also follow the tables of {', '.join(record.followed)}, up to differences"
            " that noise explains."
        )
    if unfollowed := _unfollowed(record, source):
        notes.append(f"They do not follow {', '.join(unfollowed)}; counts there may differ.")
    if record.refined_by:
        refined = ", ".join(f"{c} (from {r})" for c, r in record.refined_by.items())
        notes.append(f"Inside the bins, values follow other releases: {refined}.")
    table = next(each for each in source.plan.synthesis if each.name == record.name)
    about = table.notes(source.plan.of_period)
    return [*notes, *(f"{note}: {', '.join(columns)}." for note, columns in about.items())]


def _unfollowed(record: SynthesisRecord, source: Source) -> list[str]:
    """Releases that count columns of the records, but are not followed by the records."""
    return [
        release.name
        for release in tables_of_counts(source.plan.of_period).values()
        if {*release.domain.names} <= {*source.of_period.domain.names}
        and release.name not in {record.source, *record.followed}
    ]


def _records(record: SynthesisRecord, source: Source) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Yield the synthetic records in blocks, as counted: one record per unit for linked tables."""
    if record.members is None:
        yield from read_records(source.bundle, record.file)
        return
    units = read_columns(source.bundle, record.file)
    members = read_columns(source.bundle, record.members)
    wide, unit = dict(units), source.plan.unit
    assert unit
    # All positions, because few records may contain no unit of the largest size.
    for i in range(unit.max_rows):
        here = members[PLACE] == i + 1
        for name in members:
            values = np.full(len(units[NUMBER]), None, dtype=object)
            values[members[NUMBER][here] - 1] = members[name][here]
            wide[f"{name}.{i + 1}"] = values
    yield wide


def support(source: Source) -> str:
    """Text on relations that a release supports, and on relations that are assumptions."""
    release = source.of_period
    beyond = "is an assumption of the fit, not a finding."
    domains = release.domains
    if len(domains) > 1:
        widest = max(len(domain.axes) for domain in domains)
        return (
            f"The records are fitted to {len(domains)} noisy tables of at most {widest} columns. Any"
            f" relation beyond these tables, such as among more columns, {beyond}"
        )
    return (
        f"The records follow the release {source.record.name}: relations among its columns are as"
        " accurate as its numbers."
    )


def count_records(values: NDArray[Any], axis: Axis) -> Floats:
    """(cells,) the number of records in each cell of an axis; null is None or NaN."""
    known = np.ma.masked_array(values, mask=pd.isna(values))
    return np.bincount(cells_of(axis, known), minlength=axis.size).astype(np.float64)


def _comparison(noisy: CountTable, counted: Floats) -> Figure:
    rows, others = bars_of(noisy), counted.tolist()
    title = f"Synthetic records by {noisy.quoted[0]}"
    says = (
        f"Bars: synthetic records; dots and lines: noisy {noisy.unit.numbers} with 90% intervals,"
        f" {noisy.plus_minus}"
    )
    key = [("other", "synthetic records"), ("whisker", f"noisy {noisy.unit.numbers}, 90% interval")]
    table = DataTable(
        f"Synthetic records and noisy {noisy.unit.numbers} by {noisy.quoted[0]}",
        (noisy.titles[0], "Synthetic", "Noisy", "90% interval"),
        [
            (
                row.label,
                figure(round(other)),
                figure(round(row.value)),
                f"{figure(round(row.lower))} to {figure(round(row.upper))}",
            )
            for row, other in zip(rows, others, strict=True)
        ],
    )
    panels = bars(rows, noisy.unit.things, key=key, others=others)
    return Figure(title, says, panels, table)
