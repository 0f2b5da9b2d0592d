"""The path of the survey, walked with two made-up surveys that differ in one unit.

An audit draws from tallies that ``dpcore.audit`` makes up.  The rehearsal shows that the path before
the tallies keeps what they assume: the two surveys are written to Parquet, ingested, validated and
tallied like the real one, and every release must get exactly the tallies of the audit.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np

from dpcore.audit import survey_pairs
from dpcore.domain import Tally
from dpcore.errors import AuditError
from schemas.columns import CategoricalColumn, Column
from schemas.plan import Plan
from tasks.draw import plan_tallies
from tasks.home import private_workspace
from tasks.sql import quote, real, text
from tasks.step import step
from tasks.survey import ingest
from tasks.validate import validate


@step("rehearse the survey's path")
def rehearse(plan: Plan) -> None:
    """Raise ``AuditError`` where a made-up survey does not arrive as the audit assumes."""
    built = list(plan.built.values())
    adjacencies = [release.adjacency for release in built]
    rows = [_others(plan) + adjacency.most for adjacency in adjacencies]
    expected = survey_pairs([release.domain for release in built], rows, adjacencies)[0]
    with private_workspace(plan.dataset, "rehearsal") as workspace:
        for side in ("near", "far"):
            source = workspace / f"{side}.parquet"
            _write_survey(plan, source, far=side == "far")
            database = ingest(
                str(source), plan.read_columns, plan.rows, workspace / side, plan.adjacency
            )
            validate(database, plan.read_columns)
            arrived = plan_tallies(plan, list(plan.built), database)
            for release, pair in zip(built, expected, strict=True):
                if not _same(arrived[release.name], pair.near if side == "near" else pair.far):
                    raise AuditError(
                        f"{release.name}: a made-up survey is tallied in another way than the audit"
                        " assumes, so the audit would prove nothing"
                    )


def _others(plan: Plan) -> int:
    """Records of units that stay as they are."""
    return max(plan.rows - plan.adjacency.most, 0)


def _write_survey(plan: Plan, path: Path, far: bool) -> None:
    """All records hold the first value of every column, but for one unit.

    Its records, one more than are kept of a unit of several, hold the last on the far side; on the near
    side they hold the first, or where units are added are not there.  They weigh too much, and the
    others one step.
    """
    there = far or plan.neighbours == "replace-one"
    own = plan.adjacency.most + (plan.unit is not None) if there else 0
    heaviest = plan.weights.most_steps if plan.weights else 1
    others = _record(plan, _first, "'other ' || range", 1)
    unit = _record(plan, _last if far else _first, "'one'", 2 * heaviest)
    parts = [
        f"SELECT {', '.join(record)} FROM range({count})"
        for record, count in ((others, _others(plan)), (unit, own))
    ]
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"COPY ({' UNION ALL '.join(parts)}) TO {text(str(path))}")


def _record(plan: Plan, value: Callable[[Column], str], unit: str, steps: int) -> Iterator[str]:
    """The columns of a record as SQL."""
    for name, column in plan.columns.items():
        yield f"{value(column)} AS {quote(name)}"
    if plan.unit:
        yield f"{unit} AS {quote(plan.unit.column)}"
    if plan.weights:
        yield f"{real(float(steps * plan.weights.step))} AS {quote(plan.weights.column)}"


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
