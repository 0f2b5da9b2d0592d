"""Single counts, means and quantiles on the page: a few numbers, each with its interval."""

from dataclasses import replace

import numpy as np

from dpcore.releases.count import CountRelease
from tasks.report.bars import Bar, bars
from tasks.report.cells import read_labels
from tasks.report.parts import Drawn, Figure, Source
from tasks.report.svg import figure


def draw_count(source: Source) -> Drawn:
    """One bar: the count and its interval, and what the best answer is best at."""
    table = source.read(source.record.files[0].path)
    release = source.release
    assert isinstance(release, CountRelease)
    drawn = _draw_one(source, "noisy_count" if "noisy_count" in table else "count", "records")
    return replace(drawn, notes=[f"{release.answer}: {table['count'][0]:,}."])


def draw_mean(source: Source) -> Drawn:
    """One bar: the mean and its interval."""
    return _draw_one(source, "mean", source.record.title)


def _draw_one(source: Source, column: str, unit: str) -> Drawn:
    table = source.read(source.record.files[0].path)
    value, lower, upper = (float(table[name][0]) for name in (column, "lower_90", "upper_90"))
    title = f"{column.capitalize().replace('_', ' ')}: {source.record.title}"
    says = f"It is {figure(value)}, with a 90% interval of {figure(lower)} to {figure(upper)}"
    rows = [Bar(source.record.name, value, lower, upper)]
    return Drawn([Figure(title, says, bars(rows, title, says, unit))])


def draw_quantiles(source: Source) -> Drawn:
    """One bar per quantile, as long as its level; the error of ranks is one of parts of the rows."""
    table, name = source.read(source.record.files[0].path), source.record.title
    labels = read_labels(table, name, source.plan.columns)
    public = source.plan.adjacency.public_rows
    error = float(table["rank_error_90" if public else "rank_error_records_90"][0])
    half = error if public else error / source.plan.rows
    shown = figure(error)
    if not public:
        shown += f" records (drawn as a part of {source.plan.protection.records})"
    rows = [
        Bar(label, level, max(level - half, 0.0), min(level + half, 1.0))
        for label, level in zip(labels, table["level"].tolist(), strict=True)
    ]
    title = f"Quantiles of {name}"
    says = (
        "Each bar is the level that was asked for, a part of the records; with 90% probability every"
        f" value of {name} is a quantile of a level on its orange line, off by {shown} at most"
    )
    return Drawn([Figure(title, says, bars(rows, title, says, "part of the records"))])


def draw_near_records(source: Source) -> Drawn:
    """One bar per cell, as long as the part of the drawn records up to its end."""
    table, name = source.read(source.record.files[0].path), source.release.domain.names[0]
    labels = read_labels(table, name, source.plan.columns)
    parts = np.cumsum(table["drawn"]) / max(int(table["drawn"].sum()), 1)
    error = float(source.record.facts.get("distance_90", 0.0))
    rows = [
        Bar(label, part, max(part - error, 0.0), min(part + error, 1.0))
        for label, part in zip(labels, parts.tolist(), strict=True)
    ]
    title = f"Records up to each value of {name}"
    says = "Each bar is the part of the drawn records up to the end of a cell" + (
        f"; with 90% probability all of them are off by {figure(error)} at most" if error else ""
    )
    return Drawn([Figure(title, says, bars(rows, title, says, "part of the records"))])
