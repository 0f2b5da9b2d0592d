"""An evaluation for readers: as an HTML page, and as text for the terminal without its charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.charts.chart import Axis
from tasks.charts.heat import heat_map
from tasks.charts.svg import figure
from tasks.evaluate.charts import number_chart
from tasks.evaluate.compare import Evaluation
from tasks.explain.tables import text_table
from tasks.report.page import render
from tasks.report.parts import DataTable, Figure

WORST = 15
"""The number of rows in a table of the largest distances."""


@dataclass(frozen=True)
class PageSection:
    """A part of the page: its heading, its charts and its tables."""

    anchor: str
    heading: str
    says: str
    figures: Sequence[Figure] = ()
    tables: Sequence[DataTable] = ()


def evaluation_page(evaluation: Evaluation, title: str, warning: str | None = None) -> str:
    """The whole page, with ``warning`` above it."""
    return render(
        "evaluation.html",
        title=title,
        warning=warning,
        evaluation=evaluation,
        summary=_summary(evaluation),
        left_out=_left_out(evaluation),
        sections=list(_sections(evaluation)),
    )


def evaluation_text(e: Evaluation) -> str:
    """The evaluation's results as tables of text."""
    said = (
        f"{e.real_records:,} real and {e.synthetic_records:,} synthetic records,"
        f" {len(e.columns)} columns{_left_out(e)}"
    )
    tables = [_summary(e), *(table for section in _sections(e) for table in section.tables)]
    return "\n\n".join([said, *map(_as_text, tables)])


def _as_text(table: DataTable) -> str:
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    return f"{table.caption}\n{text_table(rows)}"


def _left_out(e: Evaluation) -> str:
    """Words that continue a sentence: columns that are not compared, and why."""
    why = {"in only one table": e.left_out, "without a value, and left out": e.empty}
    return "".join(f"; {words}: {', '.join(names)}" for words, names in why.items() if names)


def _summary(e: Evaluation) -> DataTable:
    rows = [
        (
            f"Distance of {ways}-way margins",
            f"{spread.mean:.3f} on average, {spread.worst:.3f} at worst",
            f"0: equal; worst at {' x '.join(spread.worst_at)}",
        )
        for ways, spread in e.margins.items()
    ]
    rows.append(
        (
            "Recognised by a classifier",
            f"AUC {e.propensity_auc:.3f}",
            "0.5: not recognised; far below 0.5: synthetic records repeat real ones",
        )
    )
    learnt = e.classifier
    rows.append(
        (
            f"{learnt.label} predicted for real records",
            f"AUC {learnt.trained_on_synthetic:.3f}; if trained on real records"
            f" {learnt.trained_on_real:.3f}",
            "equal: as useful for training as real records",
        )
    )
    if e.correlations:
        found = f"{e.correlations.mean:.3f} on average, {e.correlations.worst:.3f} at worst"
        where = f"0: equal; worst at {' x '.join(e.correlations.worst_at)}"
        rows.append(("Difference of rank correlations", found, where))
    if e.shapes:
        name = max(e.shapes, key=lambda name: e.shapes[name].distance)
        far = f"{e.shapes[name].distance:.3f} at worst"
        rows.append(("Distance of distribution functions", far, f"0: equal; worst at {name}"))
    return DataTable(
        "Real and synthetic records compared", ("Measure", "Found", "How to read it"), rows
    )


def _sections(e: Evaluation) -> Iterator[PageSection]:
    yield _margins(e)
    if e.shapes:
        yield _numbers(e)


def _margins(e: Evaluation) -> PageSection:
    names = e.columns
    values = np.array(
        [
            [e.distances[(a,) if a == b else tuple(sorted((a, b), key=names.index))] for b in names]
            for a in names
        ]
    )
    says = "Total variation in percent: of single columns on the diagonal, of pairs elsewhere"
    title = "Distance of the tables of one and two columns"
    side = Axis(names=names)
    worst = sorted(
        ((columns, d) for columns, d in e.distances.items() if len(columns) == 2),
        key=lambda item: -item[1],
    )[:WORST]
    rows = [(" x ".join(columns), f"{d:.4f}") for columns, d in worst]
    orders = [
        (f"{ways}", f"{s.compared:,}", f"{s.mean:.4f}", f"{s.worst:.4f}", " x ".join(s.worst_at))
        for ways, s in e.margins.items()
    ]
    return PageSection(
        "margins",
        "Tables of columns",
        "The total variation of a table is half the sum, over its cells, of the absolute differences"
        " between real and synthetic shares: the largest difference in the share of any group of cells.",
        [Figure(title, says, heat_map(100 * values, side, side))],
        [
            DataTable(
                "Total variation by number of columns",
                ("Columns", "Tables", "Mean", "Worst", "Worst at"),
                orders,
            ),
            DataTable("Pairs of columns, the worst first", ("Columns", "Total variation"), rows),
        ],
    )


def _numbers(e: Evaluation) -> PageSection:
    figures = []
    for name, shape in e.shapes.items():
        says = f"Largest difference of the distribution functions: {shape.distance:.3f}"
        for value, *both in shape.curves.left_out:
            real, synthetic = map(_percent, both)
            says += (
                f"; the bars leave out {figure(value)}, the value of {real} of the real and {synthetic}"
                " of the synthetic records"
            )
        figures.append(Figure(name, says, number_chart(name, shape)))
    quantiles = DataTable(
        "Quantiles, real / synthetic",
        ("Column", "5%", "25%", "50%", "75%", "95%"),
        [
            (
                name,
                *(
                    f"{figure(a)} / {figure(b)}"
                    for a, b in zip(q.real.tolist(), q.synthetic.tolist(), strict=True)
                ),
            )
            for name, q in e.quantiles.items()
        ],
    )
    return PageSection(
        "numbers",
        "Shapes of numbers",
        "Distributions of numeric columns, without nulls. Filled: real records. Line: synthetic records."
        " The charts show the middle 99% of the real values.",
        figures,
        [quantiles],
    )


def _percent(share: float) -> str:
    return f"{share:.1%}"
