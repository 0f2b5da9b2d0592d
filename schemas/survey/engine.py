"""Public values as Ibis expressions: exact numbers, tests for null, and lists as tables."""

import sys
from collections.abc import Sequence
from json import dumps
from typing import Any


def exactly(number: float) -> Any:
    """A double as an exact Ibis literal. Ibis would write a decimal, which engines round later."""
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


def missing(value: Any) -> Any:
    """Whether a value is null.  On Spark, Ibis's ``isnull`` is also true for NaN; NaN equals itself."""
    return (value == value).isnull() if value.type().is_floating() else value.isnull()


def finite(value: Any) -> Any:
    """Whether a double is finite. Engines order NaN above all numbers, and Ibis lacks inf on Spark."""
    return value.between(exactly(-sys.float_info.max), exactly(sys.float_info.max))


Values = Sequence[str | bool | int | float]


def listed(near: Any, values: Values, value: str = "value", code: str = "code") -> Any:
    """A table of the values and their positions, in the engine of ``near``."""
    import ibis
    import pyarrow as pa

    # As one JSON literal, because fifty thousand literals take a minute to write as SQL.
    backend = near.get_backend()
    if backend.name in ARRAYS:
        return ARRAYS[backend.name](backend, values, value, code)
    codes = pa.array(range(len(values)), pa.int64())
    return ibis.memtable(pa.table({value: pa.array(values), code: codes}))


def _on_postgresql(backend: Any, values: Values, value: str, code: str) -> Any:
    kind, sql = {
        str: ("string", "text"),
        bool: ("boolean", "boolean"),
        int: ("int64", "bigint"),
        float: ("float64", "double precision"),
    }[type(values[0])]
    array = dumps(values).replace("'", "''")
    return backend.sql(
        f"SELECT CAST({value} AS {sql}) AS {value}, {code} - 1 AS {code}"
        f" FROM json_array_elements_text('{array}') WITH ORDINALITY AS listed({value}, {code})",
        schema={value: kind, code: "int64"},
    )


def _on_spark(backend: Any, values: Values, value: str, code: str) -> Any:
    """``listed`` on Spark, with a parameter: its parser takes minutes for a literal of a megabyte."""
    import ibis

    sql = {str: "string", bool: "boolean", int: "bigint", float: "double"}[type(values[0])]
    frame = backend.raw_sql(
        f"SELECT {value}, CAST({code} AS bigint) AS {code} FROM"
        f" (SELECT posexplode(from_json(:array, 'array<{sql}>')) AS ({code}, {value}))",
        args={"array": dumps(values)},
    )
    name = ibis.util.gen_name("listed")
    frame.createOrReplaceTempView(name)
    return backend.table(name)


# No in-memory table: PostgreSQL would need a temporary table, which read-only transactions and standby
# servers refuse, and Spark would need Python on the workers.
ARRAYS = {"postgres": _on_postgresql, "pyspark": _on_spark}
