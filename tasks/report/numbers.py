"""Single counts and quantiles on the page: a few numbers, each with its interval."""

from tasks.report.bars import Bar, bars
from tasks.report.cells import read_labels
from tasks.report.parts import Drawn, Figure, Source
from tasks.report.svg import figure


def draw_count(source: Source) -> Drawn:
    """One bar: the count and its interval."""
    table = source.read(source.record.files[0].path)
    count, lower, upper = (float(table[name][0]) for name in ("count", "lower_90", "upper_90"))
    title = f"Records counted by {source.record.title}"
    says = f"The count is {figure(count)}; its 90% interval is {figure(lower)} to {figure(upper)}"
    rows = [Bar(source.record.name, count, lower, upper)]
    return Drawn([Figure(title, says, bars(rows, title, says, "records"))])


def draw_quantiles(source: Source) -> Drawn:
    """One bar per quantile, as long as the part of the records below it."""
    table, name = source.read(source.record.files[0].path), source.record.title
    labels = read_labels(table, name, source.plan.columns)
    error = float(table["rank_error_90"][0])
    rows = [
        Bar(label, level, max(level - error, 0.0), min(level + error, 1.0))
        for label, level in zip(labels, table["level"].tolist(), strict=True)
    ]
    title = f"Quantiles of {name}"
    says = (
        f"Each bar is the part of the records below a value of {name}; with 90% probability all of"
        f" them are off by {figure(error)} at most"
    )
    return Drawn([Figure(title, says, bars(rows, title, says, "part of the records"))])
