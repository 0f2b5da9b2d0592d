"""Where a plan's survey table is.  Never published, and never a secret: a plan holds no password.

source: survey.parquet                                      copied into a private workspace
source: {database: survey.duckdb, table: persons}           copied likewise
source: {postgresql: env:SURVEY_DATABASE, table: s.persons} stays where it is
"""

import os
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import parse_qs, urlsplit

from pydantic import Discriminator, Field, Tag, model_validator

from dpcore.errors import InputError
from schemas.document import Section

ENVIRONMENT = "env:"
SECRETS = {"password", "sslpassword"}
"""Options of a PostgreSQL URL that hold a password."""


class TableSource(Section):
    """A table inside a DuckDB database file."""

    database: str = Field(description="The DuckDB file.")
    table: str = Field(description="The table in it.")


class PostgreSQLSource(Section):
    """A table, or a view, of a PostgreSQL database; its records stay there."""

    postgresql: str = Field(
        description="`env:NAME`, an environment variable that holds the database's URL, or a URL "
        "without a password, postgresql://user@host/database."
    )
    table: str = Field(pattern=r"^[^.]+\.[^.]+$", description="SCHEMA.TABLE.")

    @model_validator(mode="after")  # of a field, the error would quote it, and so a password
    def _no_secret(self) -> Self:
        place = self.postgresql
        if place.startswith(ENVIRONMENT) and place.removeprefix(ENVIRONMENT).isidentifier():
            return self
        try:
            url = urlsplit(place)
            options = parse_qs(url.query, keep_blank_values=True)
        except ValueError:
            raise ValueError("postgresql: cannot be read as a URL") from None
        if url.scheme not in ("postgresql", "postgres"):
            raise ValueError(
                "postgresql: must be env:NAME or a URL, postgresql://user@host/database"
            )
        if url.password is not None or SECRETS & set(options):
            raise ValueError(
                "postgresql: holds a password, which does not belong in a plan: put the URL into an"
                " environment variable and write env:NAME"
            )
        return self

    def url(self) -> str:
        """The database's URL, which may hold a password: it is neither printed nor passed on."""
        if not self.postgresql.startswith(ENVIRONMENT):
            return self.postgresql
        name = self.postgresql.removeprefix(ENVIRONMENT)
        if not os.environ.get(name):
            raise InputError(f"source.postgresql: the environment variable {name} is not set")
        return os.environ[name]


def _form(source: Any) -> str | None:
    if isinstance(source, str):
        return "a file"
    keys = source if isinstance(source, dict) else getattr(source, "model_fields_set", ())
    forms = {"database": "a DuckDB table", "postgresql": "a PostgreSQL table"}
    return next((form for key, form in forms.items() if key in keys), None)


Source = Annotated[
    Annotated[str, Tag("a file")]
    | Annotated[TableSource, Tag("a DuckDB table")]
    | Annotated[PostgreSQLSource, Tag("a PostgreSQL table")],
    Discriminator(
        _form,
        custom_error_type="source",
        custom_error_message="must be a file, {database, table} or {postgresql, table}",
    ),
]


def beside(plan: Path, source: Source) -> Source:
    """The source of a plan in this file: relative paths in a plan are relative to the plan."""
    if isinstance(source, TableSource):
        return source.model_copy(update={"database": str(plan.parent / source.database)})
    if isinstance(source, str) and not source.startswith("package://"):
        return str(plan.parent / source)
    return source
