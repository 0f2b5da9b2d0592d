"""Tumult Analytics on a Spark of this machine: counts by a public key set from a session.

The records are held in Spark's memory, and the key set too, so that a query reads neither anew.  Spark
shuffles into as many parts as there are processors: with its own 200 a small table takes longer.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from benchmarks.scale.peers.protocol import EPSILON, Counts, Survey, report


def start() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import tmlt.analytics  # noqa: F401
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "8g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", os.getcwd())
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count()))
        .getOrCreate()
    )


def load(spark: Any, survey: Survey) -> tuple[Any, Any]:
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, Session

    records = spark.read.parquet(survey.source).cache()
    records.count()
    keys = KeySet.from_dict(survey.columns)
    keys.cache()
    everything = PureDPBudget(float("inf"))
    return Session.from_dataframe(everything, "survey", records, AddOneRow()), keys


def query(table: tuple[Any, Any], survey: Survey) -> Counts:
    from tmlt.analytics import PureDPBudget, QueryBuilder

    session, keys = table
    counts = QueryBuilder("survey").groupby(keys).count()
    found = session.evaluate(counts, PureDPBudget(EPSILON)).select(*survey.names, "count")
    return (tuple(row) for row in found.collect())


if __name__ == "__main__":
    report("tmlt.analytics", "add-remove", start, load, query)
