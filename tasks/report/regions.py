"""Counts by region on the page: the table of all records, then one bar for each larger region."""

import numpy as np

from dpcore.post.tables.bounded import bounded_interval
from dpcore.releases.table import ONE_SIDED, TWO_SIDED
from dpcore.releases.tables.hierarchy import Hierarchy
from schemas.bundle.table_file import TableFile
from tasks.report.cells import CountTable, called, read_labels
from tasks.report.counts import figures_of, list_of_tables, one_way, warnings_of
from tasks.report.parts import Drawn, Figure, Source

MOST_REGIONS = 60
"""Levels with more regions are not drawn; only their files are listed."""


def draw_regions(source: Source) -> Drawn:
    """Charts of the levels that fit on a page, and a list of all levels."""
    release: Hierarchy = source.charted
    figures: list[Figure] = []
    for level, file in zip(release.measured, source.record.tables, strict=True):
        if level == 0 and release.width > 1:
            figures += figures_of(source, file)
        elif level and release.regions.sizes[level] <= MOST_REGIONS:
            figures.append(_totals(source, release, level, file))
    return Drawn(figures, warnings_of(source), [list_of_tables(source)])


def _totals(source: Source, release: Hierarchy, level: int, file: TableFile) -> Figure:
    """The total of each region of a level, with its exact error."""
    table, size = source.read(file), release.regions.sizes[level]
    names, columns = release.regions.domain.names[:level], source.plan.described_columns
    paths = zip(
        *(read_labels(table, name, columns)[:: release.width] for name in names), strict=True
    )
    labels = [" · ".join(path) for path in paths]
    if release.regions.outside:
        labels[-1] = "outside"
    name = release.table_name(release.level_domain(level))
    error = np.sqrt(
        [release.sum_variance({name: np.repeat(one, release.width)}) for one in np.eye(size)]
    )
    value = np.asarray(table["estimate"], dtype=np.float64).reshape(size, -1).sum(axis=1)
    ends = bounded_interval(value, TWO_SIDED * error, ONE_SIDED * error, np.inf)
    number = f"estimated {source.unit.number}"
    titles, sides = [called(names[-1], columns)], [labels]
    counts = CountTable(titles, sides, sides, value, *ends, error, source.unit, number, titles)
    return one_way(counts, file.place)
