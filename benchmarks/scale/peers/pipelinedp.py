"""PipelineDP on its local backend: counts of public partitions.

Its parameters state that every record is a unit of its own in a public partition, so that it neither
samples contributions nor looks for other keys.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from benchmarks.scale.peers.protocol import EPSILON, Counts, Survey, report


def start() -> Any:
    import pipeline_dp
    import pyarrow.parquet  # noqa: F401

    return pipeline_dp


def load(dp: Any, survey: Survey) -> tuple[Any, list[tuple[str, str]]]:
    import pyarrow.parquet as pq

    table = pq.read_table(survey.source)
    first, second = (table[name].to_pylist() for name in survey.names)
    return dp, list(zip(first, second, strict=True))


def query(table: tuple[Any, list[tuple[str, str]]], survey: Survey) -> Counts:
    dp, records = table
    accountant = dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=0)
    counts = dp.DPEngine(accountant, dp.LocalBackend()).aggregate(
        records,
        dp.AggregateParams(
            metrics=[dp.Metrics.COUNT],
            noise_kind=dp.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            contribution_bounds_already_enforced=True,
            public_partitions_already_filtered=True,
        ),
        dp.DataExtractors(partition_extractor=itemgetter(0, 1), value_extractor=lambda _: 0),
        public_partitions=survey.cells,
    )
    accountant.compute_budgets()
    return ((*cell, metrics.count) for cell, metrics in counts)


if __name__ == "__main__":
    report("pipeline-dp", "add-remove", start, load, query)
