"""The private side of the river as steps: the survey into DuckDB, and its validation."""

from pathlib import Path

from schemas.plan import Plan
from tasks.step import step
from tasks.survey import ingest
from tasks.validate import validate


@step("ingest")
def ingest_survey(plan: Plan, workspace: Path) -> Path:
    """The survey table in a DuckDB file of the private workspace; returns the file's path."""
    return ingest(plan.source, plan.columns, plan.rows, workspace)


@step("validate")
def validate_survey(plan: Plan, database: Path) -> None:
    """Hold the table against the plan's columns; failures are told by column, rule and count."""
    validate(database, plan.columns)
