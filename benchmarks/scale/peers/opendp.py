"""OpenDP through Polars: counts by public keys from a context."""

from __future__ import annotations

from typing import Any

from benchmarks.scale.peers.protocol import EPSILON, Counts, Survey, report


def start() -> Any:
    import opendp.prelude as dp
    import polars  # noqa: F401

    dp.enable_features("contrib")
    return dp


def load(dp: Any, survey: Survey) -> tuple[Any, Any]:
    import polars as pl

    return dp, pl.read_parquet(survey.source)


def query(table: tuple[Any, Any], survey: Survey) -> Counts:
    import polars as pl

    dp, records = table
    keys = pl.DataFrame(survey.cells, schema=list(survey.names), orient="row")
    context = dp.Context.compositor(
        data=records.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=float(EPSILON)),
        split_evenly_over=1,
    )
    counts = context.query().group_by(survey.names).agg(dp.len(signed=True)).with_keys(keys)
    rows: Counts = counts.release().collect().select(*survey.names, "len").rows()
    return rows


if __name__ == "__main__":
    report("opendp", "add-remove", start, load, query)
