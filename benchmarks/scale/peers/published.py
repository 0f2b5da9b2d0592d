"""dprelease again, with the table as it is published: whole counts, standard errors and intervals."""

from __future__ import annotations

from benchmarks.scale.peers.ours import NEIGHBOURS, Table, load, noisy, start
from benchmarks.scale.peers.protocol import Counts, Survey, report


def query(table: Table, survey: Survey) -> Counts:
    _, release = table
    (published,) = release.publish(noisy(table, survey)).tables
    columns = (published.columns[name].tolist() for name in (*survey.names, "noisy_count"))
    return zip(*columns, strict=True)


if __name__ == "__main__":
    report("dprelease", NEIGHBOURS, start, load, query)
