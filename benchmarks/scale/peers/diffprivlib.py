"""IBM diffprivlib: its two-dimensional histogram, on the codes of the categories."""

from __future__ import annotations

from typing import Any

from benchmarks.scale.peers.protocol import EPSILON, Counts, Survey, report


def start() -> Any:
    import diffprivlib.tools
    import pyarrow.parquet  # noqa: F401

    return diffprivlib.tools


def load(tools: Any, survey: Survey) -> tuple[Any, list[Any]]:
    """Codes of each column: histograms are of numbers."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(survey.source)
    return tools, [
        pc.index_in(table[name], value_set=pc.cast(texts, "string")).to_numpy()
        for name, texts in survey.columns.items()
    ]


def query(table: tuple[Any, list[Any]], survey: Survey) -> Counts:
    tools, (first, second) = table
    sizes = [len(texts) for texts in survey.columns.values()]
    counts, *_ = tools.histogram2d(
        first, second, epsilon=EPSILON, bins=sizes, range=[(0, size) for size in sizes]
    )
    cells = zip(survey.cells, counts.ravel().tolist(), strict=True)
    return ((*cell, count) for cell, count in cells)


if __name__ == "__main__":
    report("diffprivlib", "add-remove", start, load, query)
