"""Public values as Ibis expressions: exact numbers, and lists as tables."""

from collections.abc import Sequence
from typing import Any


def exactly(number: float) -> Any:
    """A double as an Ibis literal; Ibis writes 0.1 as a decimal, which engines round later."""
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


def listed(
    near: Any, values: Sequence[str | bool | int | float], value: str = "value", code: str = "code"
) -> Any:
    """A table of the values and their positions, in the engine of the expression ``near``.

    Fifty thousand literals take a minute to write as SQL, so the list is one object.  It is an
    in-memory table, for which PostgreSQL would need a temporary table: a transaction that only
    reads may not make one, nor may a standby server.  There the list is an array in one constant.
    """
    import ibis
    import pyarrow as pa

    backend = near.get_backend()
    if backend.name != "postgres":
        codes = pa.array(range(len(values)), pa.int64())
        return ibis.memtable(pa.table({value: pa.array(values), code: codes}))
    kind, sql = {
        str: ("string", "text"),
        bool: ("boolean", "boolean"),
        int: ("int64", "bigint"),
        float: ("float64", "double precision"),
    }[type(values[0])]
    array = ",".join('"' + _escaped(str(item)) + '"' for item in values).replace("'", "''")
    return backend.sql(
        f"SELECT {value}, {code} - 1 AS {code} FROM"
        f" unnest('{{{array}}}'::{sql}[]) WITH ORDINALITY AS listed({value}, {code})",
        schema={value: kind, code: "int64"},
    )


def _escaped(element: str) -> str:
    return element.replace("\\", "\\\\").replace('"', '\\"')
