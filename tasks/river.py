"""The private side of the river as steps: the survey where it can be read, and its validation."""

from pathlib import Path

from schemas.plan import Plan
from schemas.source import PostgreSQLSource, SparkSource
from tasks.engines.postgresql import open_postgresql
from tasks.engines.spark import open_spark
from tasks.reading import Survey
from tasks.step import step
from tasks.survey import ingest
from tasks.validate import validate


@step("ingest")
def ingest_survey(plan: Plan, workspace: Path) -> Survey:
    """A copy of the survey in the private workspace, or a session with the engine it stays in."""
    if isinstance(plan.source, PostgreSQLSource):
        return open_postgresql(plan.source, plan.read_columns, plan.rows, plan.adjacency)
    if isinstance(plan.source, SparkSource):
        return open_spark(plan.source, plan.read_columns, plan.rows, plan.adjacency)
    return ingest(plan.source, plan.read_columns, plan.rows, workspace, plan.adjacency)


@step("validate")
def validate_survey(plan: Plan, survey: Survey) -> None:
    """Hold the table against the plan's columns; failures are told by column, rule and count."""
    validate(survey, plan.read_columns)
