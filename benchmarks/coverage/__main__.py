"""Coverage of every published interval, by simulation over made-up populations.

    python -m benchmarks.coverage --draws 200
    python -m benchmarks.coverage --bands --draws 4000

prints one line for each release, population and published column with an error: ``cover``, the share
of 90% intervals that contain the number without noise; ``doubt``, the standard error of that share;
``large``, the share where the number is more than three standard errors from zero; and ``rms``, the
root mean square of the stated standard errors over that of the actual errors.  Every draw goes through
the privacy line, and everything is published anew.  ``--bands`` measures densities only, from their
noise, which is fast enough for thousands of draws.  Quantiles err in rank, within a bound.

    python -m benchmarks.coverage --shapes --draws 200 --json

prints how often the bands of densities hold the exact kernel estimate of ten shapes, and with ``--json``
a line of JSON for each; ``--cells 1440`` is for a coarse grid of the columns, ``--answered 0.3`` for
columns in which three records of ten have a value, ``--transform log`` for columns from 1 to 1000 whose
density is estimated on the scale of their logarithms, and whose bands are on their own.

    python -m benchmarks.coverage --strata --draws 8
    python -m benchmarks.coverage --strata --draws 2 --table survey.parquet --alpha 1/2

print coverage and mean width of intervals of counts by the exact size of cells.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.coverage.measure import band_coverage, measure
from benchmarks.coverage.populations import POPULATIONS, RELEASES, tally
from benchmarks.coverage.shapes import by_shape
from benchmarks.coverage.strata import by_size, of_file
from dpcore.domain.transforms import TRANSFORMS
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.densities.density import Density
from dpcore.releases.tables.fitted import FittedTables
from dpcore.releases.tables.hierarchy import Hierarchy
from tasks.explain.tables import text_table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--draws", type=int, default=200, help="draws of each release")
    parser.add_argument("--release", choices=sorted(RELEASES), help="only this one")
    parser.add_argument("--bands", action="store_true", help="only densities, from their noise")
    parser.add_argument("--strata", action="store_true", help="counts, by the exact size of cells")
    parser.add_argument("--table", type=Path, help="with --strata: pairs of a public Parquet table")
    parser.add_argument("--alpha", default="1", help="of the release of --table")
    parser.add_argument("--shapes", action="store_true", help="bands of densities, by shape")
    parser.add_argument("--mechanism", help="with --shapes: only this one")
    parser.add_argument("--cells", type=int, help="with --shapes: of the columns' own grid")
    parser.add_argument(
        "--answered", type=float, default=1.0, help="with --shapes: the share with a value"
    )
    parser.add_argument(
        "--transform", choices=[*TRANSFORMS], default="none", help="with --shapes: of the columns"
    )
    parser.add_argument(
        "--periodic", action="store_true", help="with --shapes: of densities whose ends meet"
    )
    parser.add_argument("--json", action="store_true", help="with --shapes: lines of JSON")
    options = parser.parse_args()
    if options.shapes:
        of = options.mechanism, options.cells, options.answered, options.transform, options.periodic
        found = by_shape(options.draws, *of)
        if options.json:
            for row in found:
                print(json.dumps(row), flush=True)
            return
        print(text_table([{k: _short(v) for k, v in row.items()} for row in found]))
        return
    if options.strata:
        print(
            text_table(list(strata(options.draws, options.release, options.table, options.alpha)))
        )
        return
    if options.bands:
        print(text_table(list(bands(options.draws, options.release))))
        return
    rows = []
    for name, build in RELEASES.items():
        if options.release in (None, name):
            for i, population in enumerate(POPULATIONS):
                release = build(population.rows)
                records = tally(population, release.domain)
                found = measure(release, records, options.draws, seed=i * options.draws)
                rows += [{"release": name, "population": population.name, **c.row()} for c in found]
    print(text_table(rows))


def _short(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def strata(
    draws: int, chosen: str | None, table: Path | None, alpha: str
) -> Iterator[dict[str, str]]:
    """A row for each dense release of counts, population, column and size."""
    if table is not None:
        yield from by_size(*of_file(table, alpha), draws)
        return
    for name, build in RELEASES.items():
        release = build(POPULATIONS[0].rows)
        dense = isinstance(release, FittedTables | Hierarchy) or (
            isinstance(release, Histogram) and not isinstance(release, ThresholdedHistogram)
        )
        if not dense or chosen not in (None, name):
            continue
        for i, population in enumerate(POPULATIONS):
            release = build(population.rows)
            if not release.adjacency.weighted:
                records = tally(population, release.domain)
                for row in by_size(release, records, draws, seed=i * draws):
                    yield {"release": name, "population": population.name} | row


def bands(draws: int, chosen: str | None) -> Iterator[dict[str, str]]:
    """A row for each kind of density."""
    for name, build in RELEASES.items():
        release = build(POPULATIONS[0].rows)
        if isinstance(release, Density) and chosen in (None, name):
            found = band_coverage(release, draws)
            yield {"release": name} | {key: f"{value:.3f}" for key, value in found.items()}


if __name__ == "__main__":
    main()
