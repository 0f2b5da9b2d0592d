"""dprelease: the steps of a release on the survey that it ingested, up to the noisy counts."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.scale.peers.protocol import EPSILON, Counts, Survey, report

if TYPE_CHECKING:
    from dpcore.domain.adjacency import Relation
    from dpcore.line.statistic import Noisy
    from dpcore.releases.counts.histogram import Histogram
    from tasks.survey.reading import Session

NEIGHBOURS: Relation = "replace-one"
OPEN = ExitStack()
"""Holds the copy open to the end of the process: all readings of a run share one connection."""
Table = tuple["Session", "Histogram"]


def start() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for module in (
        "ibis",
        "dpcore.releases.counts.histogram",
        "tasks.survey.ingest",
        "tasks.survey.tally",
    ):
        import_module(module)


def load(_: None, survey: Survey) -> Table:
    """The private copy of the survey, typed and opened as a run opens it, and what is to be released."""
    from dpcore.accounting.budget import Budget
    from dpcore.domain.adjacency import Adjacency
    from dpcore.domain.axes import Categories
    from dpcore.domain.domain import Domain
    from dpcore.releases.counts.histogram import Histogram
    from schemas.survey.columns import CategoricalColumn
    from tasks.survey.ingest import ingest
    from tasks.survey.reading import held_open

    columns = survey.columns.items()
    described = {
        name: CategoricalColumn(type="categorical", categories=list(texts))
        for name, texts in columns
    }
    domain = Domain(tuple(Categories(name, tuple(texts)) for name, texts in columns))
    workspace = Path(tempfile.mkdtemp(dir=Path(survey.source).parent))
    near = Adjacency(NEIGHBOURS)
    database = ingest(survey.source, described, survey.rows, workspace, near)
    share = Budget(Fraction(EPSILON))
    opened = OPEN.enter_context(held_open(database))
    return opened, Histogram("table", domain, survey.rows, share, adjacency=near)


def noisy(table: Table, survey: Survey) -> Noisy:
    """One release: tally, exact statistic, privacy line."""
    from dpcore.line.privacy_line import perturb
    from dpcore.sampling.source import SystemSource
    from tasks.survey.tally import Counting, tallies

    opened, release = table
    (tally,) = tallies(
        opened, [release.domain], Counting(rows=survey.rows, adjacency=release.adjacency)
    )
    return perturb(release.statistic(tally), release.mechanism, release.share, SystemSource())


def query(table: Table, survey: Survey) -> Counts:
    counts = noisy(table, survey).values.tolist()
    return ((*cell, count) for cell, count in zip(survey.cells, counts, strict=True))


if __name__ == "__main__":
    report("dprelease", NEIGHBOURS, start, load, query)
