"""Steps that make the survey readable, by a copy or in its engine, and validate it."""

from pathlib import Path

from schemas.plan import Plan
from schemas.survey.source import PostgreSQLSource, SparkSource, TableSource
from tasks.ledger import Ledger
from tasks.survey.engines.postgresql import open_postgresql
from tasks.survey.engines.spark import open_spark
from tasks.survey.ingest import ingest
from tasks.survey.naming import names_of
from tasks.survey.reading import Survey
from tasks.survey.sources import find_file
from tasks.survey.validate import validate
from tasks.workplace.home import home, ledger_url
from tasks.workplace.room import require_room
from tasks.workplace.step import step

COPIED = 1.5
"""The size of the private copy, as a fraction of the survey's file, roughly."""


def require_source(plan: Plan) -> None:
    """Raise ``InputError`` if the survey's file or the address of its database is missing, or if the
    disk has no room for a private copy; the size of the survey stays private."""
    if isinstance(plan.source, PostgreSQLSource):
        plan.source.url()
    elif isinstance(plan.source, str | TableSource):
        size = find_file(plan.source).stat().st_size
        require_room(home(), COPIED * size, "the private copy of the survey")


@step("name the survey")
def name_survey(plan: Plan) -> list[str]:
    """The names by which the ledger knows the plan's survey; none for a table in memory."""
    return names_of(plan.source, Ledger(ledger_url()).sources())


@step("ingest")
def ingest_survey(plan: Plan, workspace: Path) -> Survey:
    """Make a copy of the survey in the private workspace, or a session with the engine it stays in."""
    if isinstance(plan.source, PostgreSQLSource):
        return open_postgresql(
            plan.source, plan.read_columns, plan.rows, plan.adjacency, plan.counts
        )
    if isinstance(plan.source, SparkSource):
        return open_spark(plan.source, plan.read_columns, plan.rows, plan.adjacency, plan.counts)
    return ingest(plan.source, plan.read_columns, plan.rows, workspace, plan.adjacency, plan.counts)


@step("validate")
def validate_survey(plan: Plan, survey: Survey) -> None:
    """Check the table against the plan; errors only name columns, rules and counts."""
    validate(survey, plan.read_columns, plan.invalid)
