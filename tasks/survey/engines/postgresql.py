"""Opens a survey that stays in PostgreSQL.

One transaction, REPEATABLE READ and READ ONLY, spans all readings: the validated records are the ones
tallied, and nothing can be written, not even a temporary table.  Text is compared byte by byte, whatever
the collation of the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.errors import InputError
from schemas.survey.columns import ReadColumn
from schemas.survey.reading import sources
from schemas.survey.source import PostgreSQLSource
from tasks.survey.engines import open_session
from tasks.survey.private_file import call_guarded
from tasks.survey.reading import Session
from tasks.survey.sources import no_table
from tasks.survey.sql import quote

if TYPE_CHECKING:
    import psycopg

IBIS_TYPES = {
    "text": "string",
    "varchar": "string",
    "bool": "boolean",
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "float4": "float32",
    "float8": "float64",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamp('UTC')",
}
"""PostgreSQL's names of the types that a plan can declare."""

IDENTITY = "SELECT system_identifier::text, current_database()::text FROM pg_control_system()"
SETTINGS = {
    "standard_conforming_strings": "on",
    "timezone": "'UTC'",
    "datestyle": "'ISO, YMD'",
    "intervalstyle": "'postgres'",
    "extra_float_digits": "1",
    "bytea_output": "'hex'",
    "xmlbinary": "'base64'",
}
"""Settings that make a view's results independent of the defaults of the server and the user."""

# Only the server's own types have a short name here: a user's type may have the same name.
DESCRIBED = """
    SELECT attname, format_type(atttypid, NULL), CASE WHEN typnamespace = 'pg_catalog'::regnamespace
        THEN typname END
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""

KNOWN = """
    SELECT nspname || '.' || relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND nspname NOT IN ('pg_catalog', 'information_schema')
"""


def open_postgresql(
    source: PostgreSQLSource,
    columns: Mapping[str, ReadColumn],
    rows: int,
    adjacency: Adjacency = REPLACE_ONE,
    counts: str | None = None,
) -> Session:
    """A session with the database; raises ``InputError`` and ``DataError``, without any value."""
    connection = _connect(source)
    try:
        name = ".".join(map(quote, source.table.split(".")))
        types = call_guarded(
            lambda: _types(connection, name),
            InputError,
            f"{source.postgresql}: the columns of {source.table} cannot be read",
        )
        if not types:
            known = call_guarded(
                lambda: [name for (name,) in connection.execute(KNOWN).fetchall()],
                InputError,
                f"{source.postgresql}: its tables cannot be listed",
            )
            raise InputError(no_table(source.postgresql, source.table, known))
        return open_session(
            types,
            lambda read: _table(connection, name, types, read),
            columns,
            rows,
            adjacency,
            counts,
            connection.close,
        )
    except BaseException:
        connection.close()
        raise


def identity(source: PostgreSQLSource) -> tuple[str, str]:
    """The cluster and the database behind a URL, as the server itself names them."""
    connection = _connect(source)
    try:
        cluster, database = call_guarded(
            lambda: connection.execute(IDENTITY).fetchall()[0],
            InputError,
            f"{source.postgresql}: the database does not state its identity",
        )
        return str(cluster), str(database)
    finally:
        connection.close()


def _connect(source: PostgreSQLSource) -> psycopg.Connection[Any]:
    try:
        import psycopg
    except ImportError:
        raise InputError(
            'a survey in PostgreSQL needs psycopg; run: pip install "dprelease[postgres]"'
        ) from None
    url = source.url()
    connection = call_guarded(
        lambda: psycopg.connect(url, client_encoding="utf8"),
        InputError,
        f"{source.postgresql}: the database cannot be reached",
    )
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    return connection


def _types(connection: psycopg.Connection[Any], name: str) -> dict[str, str]:
    """The type of every column; the transaction begins here."""
    # No function or operator of a database user can then replace the server's own.
    connection.execute("SET LOCAL search_path = pg_catalog")
    for setting, value in SETTINGS.items():
        connection.execute(f"SET LOCAL {setting} = {value}")
    found = connection.execute(DESCRIBED, [name]).fetchall()
    return {column: IBIS_TYPES.get(kind, shown) for column, shown, kind in found}


def _table(
    connection: psycopg.Connection[Any],
    name: str,
    types: Mapping[str, str],
    columns: Mapping[str, ReadColumn],
) -> Any:
    import ibis

    forms = {
        "string": 'CAST({0} AS text) COLLATE "C" AS {0}',
        "timestamp('UTC')": "{0} AT TIME ZONE 'UTC' AS {0}",
    }
    kinds = {name: types[name] for name in sources(columns).values()}
    read = [forms.get(kind, "{0}").format(quote(name)) for name, kind in kinds.items()]
    return ibis.postgres.from_connection(connection).sql(
        f"SELECT {', '.join(read)} FROM {name}",
        schema={c: kind.removesuffix("('UTC')") for c, kind in kinds.items()},
    )
