"""Fits the plan's models to committed draws, and publishes their coefficients with their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpcore.errors import InputError
from dpcore.estimates.model import BLURRED, HARDLY_ANY, Coefficient
from dpcore.releases.numbers.moments import HIDDEN
from dpcore.releases.table import Table, TableColumn, Uncertainty, reason_column, unless
from schemas.bundle.manifest import AnalysisRecord
from schemas.plan.analysis import Analysis
from tasks.bundle.drawn import DrawnPlan
from tasks.bundle.publish import drawn_plan, written
from tasks.inference.fit import Fit, answering
from tasks.workplace.job import ReleaseJob
from tasks.workplace.step import step

STATED = (
    "Errors include sampling and privacy noise, to first order and with normal quantiles. The interval"
    " is for the population from which the survey is assumed to be drawn, and is right 19 times in 20"
)


@step("fit models")
def write_analyses(job: ReleaseJob, staging: Path) -> list[AnalysisRecord]:
    """Fit every model of the plan; a model without a solution gets a reason instead of coefficients."""
    plan = job.plan
    if not plan.analyses:
        return []
    drawn = drawn_plan(job)
    records = []
    for analysis in plan.analyses:
        source, found = _fitted(drawn, analysis)
        table = coefficients_table(analysis.name, found)
        records.append(
            AnalysisRecord(
                **analysis.model_dump(),
                source=source,
                notes=list(found.notes),
                file=written(job, staging, table, {"dprelease.formula": analysis.formula}),
            )
        )
    return records


def _fitted(drawn: DrawnPlan, analysis: Analysis) -> tuple[str, Fit]:
    """The release that answers, and its fit, or why it has none."""
    formula, family = analysis.formula, analysis.family
    try:
        return drawn.fit(formula, family)
    except InputError as error:
        source = next((release.name for release in answering(drawn.plan, formula)), "")
        return source, Fit(formula, family, (), (str(error),))


def coefficients_table(name: str, found: Fit) -> Table:
    """One row for each coefficient; if it has no errors, its numbers are null and a reason is given."""
    rows = [coefficient.row for coefficient in found.coefficients]
    hidden = np.array([not np.isfinite(row["standard_error"]) for row in rows], dtype=bool)
    parts = []
    for key, text in Coefficient.MEANING.items():
        values: Any = np.array([row[key] for row in rows], str if key == "term" else np.float64)
        parts.append(TableColumn(key, values if key == "term" else unless(hidden, values), text))
    notes = " ".join(found.notes)
    why = next((text for text in (BLURRED, HIDDEN) if text in notes), HARDLY_ANY)
    parts.append(reason_column(hidden, why))
    statement = " ".join([f"{STATED}.", *found.assumes])
    stated = Uncertainty(
        "estimate", "standard_error", ("lower_95", "upper_95"), "normal", statement
    )
    return Table("analyses", name, parts, (stated,))
