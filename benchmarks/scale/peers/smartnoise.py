"""SmartNoise SQL on a pandas table, which it copies into an SQLite database in memory.

It takes no list of keys: ``censor_dims: false`` says that the groups which occur may be public, and
groups without records do not come back.
"""

from __future__ import annotations

from typing import Any

from benchmarks.scale.peers.protocol import EPSILON, Counts, Survey, report


def start() -> Any:
    import pandas  # noqa: F401
    import snsql

    return snsql


def load(snsql: Any, survey: Survey) -> Any:
    import pandas as pd

    columns = {name: {"type": "string"} for name in survey.names}
    table = {"row_privacy": True, "censor_dims": False, "rows": survey.rows, **columns}
    return snsql.from_df(
        pd.read_parquet(survey.source),
        privacy=snsql.Privacy(epsilon=float(EPSILON)),
        metadata={"": {"public": {"survey": table}}},
    )


def query(reader: Any, survey: Survey) -> Counts:
    names = ", ".join(survey.names)
    _, *rows = reader.execute(f"SELECT {names}, COUNT(*) FROM public.survey GROUP BY {names}")
    return (tuple(row) for row in rows)


if __name__ == "__main__":
    report("smartnoise-sql", "add-remove", start, load, query)
