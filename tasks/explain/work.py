"""Estimates the time and memory of a run from the plan alone."""

from functools import reduce
from operator import add

from dpcore.releases.abilities import BLOCK, FitsRecords
from dpcore.releases.counts.unit import tables_of_counts
from dpcore.releases.table import MOST_FILES
from dpcore.releases.work import Work
from schemas.plan import Plan
from schemas.plan.synthesis import Synthesis

START = Work(5.0)
"""Seconds for the start, the report and the documents of a small bundle."""

PROGRAM_BYTES = 0.54 * 2**30

TABLE = 0.04
"""Seconds for each table: its files, its charts and its entries in the documents."""

READ = 1.2e-7
"""Seconds for each value that is read, checked and counted, and for each synthetic value."""

IMPLICATE = 1e-5
"""Approximate seconds for each value of an implicate (``python -m benchmarks.implicates``)."""

DRAWN_BYTES, CODE_BYTES, STORED_BYTES = 120, 2, 4
"""Bytes of a synthetic value: in memory while its block is drawn, in memory afterwards, and on disk."""

SMALL_BUNDLE_BYTES = 4 * 2**20


def work_of(plan: Plan) -> Work:
    """Processor seconds and peak bytes of ``dprelease run`` on a machine like the one measured."""
    from dpcore.audit.short import audit_seconds  # slow to import

    columns = len(plan.record_columns)
    parts = [
        START,
        Work(audit_seconds(plan.built.values())),
        Work(READ * plan.rows * len(plan.columns)),
    ]
    parts += [release.work for release in plan.built.values()]
    parts += [
        Work(TABLE * min(len(release.domains), MOST_FILES))
        for release in tables_of_counts(plan.built).values()
    ]
    for table in plan.synthesis:
        rows = table.rows or plan.rows
        kept = DRAWN_BYTES * min(rows, BLOCK) + CODE_BYTES * rows
        parts.append(Work(READ * rows * columns, kept * columns))
        source = plan.of_period[table.from_]
        again = table.rows != source.rows or not source.adjacency.public_rows
        if isinstance(source, FitsRecords) and again:  # except records published as tables
            model = source.model_seconds if plan.series else 0.0  # else fitted for the tables
            parts.append(Work(source.fit_seconds(rows) + model))
        parts.append(Work(IMPLICATE * implicate_values(plan, table)))
    needed = reduce(add, parts)
    return Work(needed.seconds, PROGRAM_BYTES + needed.bytes)


def bundle_bytes(plan: Plan) -> float:
    """The approximate bytes of a release on disk: a quarter of the size of its numbers in memory."""
    tables = sum(release.work.bytes for release in plan.built.values()) / 4
    made = [(table.rows or plan.rows) * len(plan.record_columns) for table in plan.synthesis]
    again = sum(implicate_values(plan, table) for table in plan.synthesis)
    return SMALL_BUNDLE_BYTES + tables + STORED_BYTES * (sum(made) + again)


def implicate_values(plan: Plan, table: Synthesis) -> int:
    """The number of values of all implicates of a synthetic table together."""
    release = plan.of_period[table.from_]
    return (table.implicates or 0) * release.rows * len(release.domain.axes)


def work_text(plan: Plan) -> str:
    """The work of a run as a sentence."""
    needed = work_of(plan)
    seconds, size = float(f"{needed.seconds:.2g}"), needed.bytes / 2**30
    return (
        f"A run takes about {seconds:,.0f} s of processor time and {size:.1f} GiB of memory, on a"
        " machine like the one that was measured."
    )
