"""The path of the survey, walked with two made-up surveys that differ in one unit.

An audit draws from tallies that ``dpcore.audit`` makes up.  The rehearsal shows that the path before
the tallies keeps what they assume: the two surveys are written to Parquet, ingested, validated and
tallied like the real one, and every release must get exactly the tallies of the audit.
"""

from pathlib import Path

import duckdb
import numpy as np

from dpcore.audit import survey_pairs
from dpcore.domain import Tally
from dpcore.errors import AuditError
from schemas.columns import CategoricalColumn, Column
from schemas.plan import Plan
from tasks.home import private_workspace
from tasks.sql import quote, real, text
from tasks.step import step
from tasks.survey import ingest
from tasks.tally import tallies
from tasks.validate import validate


@step("rehearse the survey's path")
def rehearse(plan: Plan) -> None:
    """Raise ``AuditError`` where a made-up survey does not arrive as the audit assumes."""
    domains = [release.domain for release in plan.built.values()]
    expected = survey_pairs(domains, plan.rows, plan.adjacency)[0]
    with private_workspace(plan.dataset, "rehearsal") as workspace:
        for side in ("near", "far"):
            source = workspace / f"{side}.parquet"
            _write_survey(plan, source, far=side == "far")
            database = ingest(
                str(source), plan.columns, plan.rows, workspace / side, plan.adjacency
            )
            validate(database, plan.columns)
            arrived = tallies(database, domains, plan.rows, plan.adjacency)
            for release, pair, found in zip(plan.built.values(), expected, arrived, strict=True):
                if not _same(found, pair.near if side == "near" else pair.far):
                    raise AuditError(
                        f"{release.name}: a made-up survey is tallied in another way than the audit"
                        " assumes, so the audit would prove nothing"
                    )


def _write_survey(plan: Plan, path: Path, far: bool) -> None:
    """All records hold the first value of every column; those of one unit, on the far side, the last.

    On the near side they hold the first too, or where units are added are not there.
    """
    unit = min(plan.adjacency.most, plan.rows)
    there = far or plan.adjacency.relation == "replace-one"
    records = [(_first, plan.rows - unit), (_last if far else _first, unit * there)]
    parts = [
        "SELECT "
        + ", ".join(f"{value(column)} AS {quote(name)}" for name, column in plan.columns.items())
        + f" FROM range({count})"
        for value, count in records
    ]
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"COPY ({' UNION ALL '.join(parts)}) TO {text(str(path))}")


def _first(column: Column) -> str:
    return _literal(column, 0)


def _last(column: Column) -> str:
    return _literal(column, -1)


def _literal(column: Column, position: int) -> str:
    values = column.categories if isinstance(column, CategoricalColumn) else column.bounds
    value = values[position]
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return text(value)
    return real(value) if isinstance(value, float) else f"{value}::BIGINT"


def _same(found: Tally, expected: Tally) -> bool:
    return np.array_equal(found.cells, expected.cells) and np.array_equal(
        found.counts, expected.counts
    )
