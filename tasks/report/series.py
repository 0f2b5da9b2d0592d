"""A run of a series on the page: bars with intervals, for each quantity of its period."""

from collections.abc import Iterator

import numpy as np

from dpcore.post.series import QUANTITIES
from schemas.bundle.table_file import TableFile
from tasks.charts.bars import bars
from tasks.report.cells import read_counts, sides_of
from tasks.report.counts import LARGEST_CELLS, bars_of, choose, count_table
from tasks.report.parts import Drawn, Figure, Source

FOR_RECORDS = "Values of the synthetic records follow these counts inside their bins."


def draw_series(source: Source) -> Drawn:
    """Charts of the largest cells of a few tables, and notes on earlier runs."""
    if source.release.name in source.plan.inside_bins:
        return Drawn([], [FOR_RECORDS])
    files = source.record.tables
    shown = choose(files, [sides_of(file.columns, source.plan.columns) for file in files])
    facts = source.record.facts
    notes = [f"This is run {facts['run']} of a series of {facts['periods']} periods."]
    if facts["earlier_runs"]:
        listed = ", ".join(facts["earlier_runs"])
        notes.append(f"It uses the draws of {listed}, and does not change their numbers.")
    if len(shown) < len(files):
        notes.append(f"{len(shown)} of {len(files)} tables are shown here.")
    return Drawn([each for file in shown for each in _figures(source, file)], notes)


def _figures(source: Source, file: TableFile) -> Iterator[Figure]:
    table, series = source.read(file), source.plan.series
    assert series is not None
    columns = {n: column for n, column in source.plan.columns.items() if n != series.column}
    quantities = [*dict.fromkeys(table["quantity"].tolist())]
    # The largest of many changes would be those with the most noise.
    sizes = table["estimate"][table["quantity"] == quantities[0]]
    largest = np.sort(np.argsort(-sizes, kind="stable")[:LARGEST_CELLS])
    for quantity in quantities:
        here = np.flatnonzero(table["quantity"] == quantity)
        rows = here[largest]
        counts = read_counts({name: values[rows] for name, values in table.items()}, columns)
        words = QUANTITIES[quantity]
        title = f"{words.capitalize()}, by {', '.join(counts.titles)}"
        largest_of = (
            f"the {len(rows)} of {len(here):,} with the largest {QUANTITIES[quantities[0]]}"
        )
        left = f"; {largest_of} are shown" * (len(rows) < len(here))
        says = f"Each bar is one {words}, each line its 90% interval, {counts.plus_minus}{left}"
        numbers = count_table(counts, file.place)
        yield Figure(title, says, bars(bars_of(counts), "records"), numbers)
