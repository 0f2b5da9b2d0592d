"""The location of a plan's survey table. It is never published and may not contain a password.

source: survey.parquet                                      copied into a private workspace
source: {database: survey.duckdb, table: persons}           copied likewise
source: {postgresql: env:SURVEY_DATABASE, table: s.persons} read inside the database
source: {spark: spark://host:7077, parquet: s3a://bucket/x} read inside Spark; or {spark, table}
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import parse_qs, urlsplit

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from dpcore.errors import InputError
from schemas.document import Section

ENVIRONMENT = "env:"
SECRETS = {"password", "sslpassword"}
"""Options of a PostgreSQL URL that contain a password."""


class TableSource(Section):
    """A table inside a DuckDB database file."""

    database: str = Field(description="The DuckDB file.")
    table: str = Field(description="The table in it.")


class PostgreSQLSource(Section):
    """A table or a view of a PostgreSQL database. Its records stay in the database."""

    postgresql: str = Field(
        description="`env:NAME`, an environment variable with the database's URL. Or a URL without a"
        " password, postgresql://user@host/database."
    )
    table: str = Field(pattern=r"^[^.]+\.[^.]+$", description="SCHEMA.TABLE.")

    @model_validator(mode="after")  # a field validator's error would quote the URL with a password
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
                "postgresql: a plan may not contain a password. Put the URL into an environment"
                " variable and write env:NAME"
            )
        return self

    def url(self) -> str:
        """The database's URL. Never print it, because it may contain a password."""
        if not self.postgresql.startswith(ENVIRONMENT):
            return self.postgresql
        name = self.postgresql.removeprefix(ENVIRONMENT)
        if not os.environ.get(name):
            raise InputError(f"source.postgresql: the environment variable {name} is not set")
        return os.environ[name]


class SparkSource(Section):
    """Parquet files or a table, read by a Spark cluster in place."""

    spark: str = Field(
        description="The master's URL, spark://host:7077, or local[2], yarn, k8s://...",
    )
    parquet: str | None = Field(
        default=None,
        min_length=1,
        description="The path of a Parquet file, or of a folder of Parquet files, on the workers.",
    )
    table: str | None = Field(
        default=None,
        pattern=r"^[^.]+(\.[^.]+){1,2}$",
        description="SCHEMA.TABLE of Spark's catalogue, stored in files.",
    )

    @field_validator("spark")
    @classmethod
    def _known(cls, master: str) -> str:
        if not re.fullmatch(r"local(\[[0-9*]+\])?|yarn|(spark|k8s)://[^@?]+", master):
            raise ValueError("must be spark://HOST:PORT, local[2], yarn or k8s://...")
        return master

    @model_validator(mode="after")
    def _one_place_and_no_secret(self) -> Self:
        if (self.parquet is None) == (self.table is None):
            raise ValueError("needs either parquet (a path) or table (SCHEMA.TABLE)")
        authority = urlsplit(self.parquet or "").netloc
        # abfs://container@account contains no key.
        if "@" in authority and not (self.parquet or "").startswith("abfs"):
            raise ValueError(
                "parquet: a plan may not contain an access key; put it into Spark's configuration"
            )
        return self

    @property
    def place(self) -> str:
        """The path or the table."""
        return str(self.parquet or self.table)

    @property
    def form(self) -> str:
        """The form of the data: files or a table."""
        return "Parquet files" if self.parquet else "a table"

    @property
    def what(self) -> str:
        """The noun for a missing path or table."""
        return "file or folder" if self.parquet else "table"


def _form(source: Any) -> str | None:
    if isinstance(source, str):
        return "a file"
    keys = source if isinstance(source, dict) else getattr(source, "model_fields_set", ())
    forms = {
        "database": "a DuckDB table",
        "postgresql": "a PostgreSQL table",
        "spark": "a survey on Spark",
    }
    return next((form for key, form in forms.items() if key in keys), None)


Source = Annotated[
    Annotated[str, Tag("a file")]
    | Annotated[TableSource, Tag("a DuckDB table")]
    | Annotated[PostgreSQLSource, Tag("a PostgreSQL table")]
    | Annotated[SparkSource, Tag("a survey on Spark")],
    Discriminator(
        _form,
        custom_error_type="source",
        custom_error_message="must be a file, {database, table}, {postgresql, table} or {spark, ...}",
    ),
]


def resolve_source(plan: Path, source: Source) -> Source:
    """The source with relative paths resolved against the folder of the plan's file."""
    if isinstance(source, TableSource):
        return source.model_copy(update={"database": str(plan.parent / source.database)})
    if isinstance(source, str) and not source.startswith("package://"):
        return str(plan.parent / source)
    if isinstance(source, SparkSource) and source.parquet and "://" not in source.parquet:
        return source.model_copy(update={"parquet": str(plan.parent / source.parquet)})
    return source
