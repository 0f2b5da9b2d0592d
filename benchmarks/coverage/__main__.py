"""Coverage of every published interval, by simulation over made-up populations.

    python -m benchmarks.coverage --draws 200
    python -m benchmarks.coverage --bands --draws 4000

prints one line for each release, population and published column with an error: ``cover``, the share
of 90% intervals that hold the number without noise; ``doubt``, how far off that share may be (one
standard error, for so many draws); ``large``, the share where the number is more than three standard
errors from zero; and ``rms``, the root mean square of what was stated as standard error over that of
the errors made.  Every draw is of the mechanism itself, through the privacy line, and everything is
published anew.  ``--bands`` prints the same of densities alone, from their noise (``bands``), which
takes so little that thousands of draws can be had.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.coverage.bands import band_coverage
from benchmarks.coverage.measure import measure
from benchmarks.coverage.populations import POPULATIONS, RELEASES, tally
from dpcore.releases.density import Density
from tasks.explain import text_table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--draws", type=int, default=200, help="draws of each release")
    parser.add_argument("--release", choices=sorted(RELEASES), help="this one alone")
    parser.add_argument("--bands", action="store_true", help="densities alone, from their noise")
    options = parser.parse_args()
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


def bands(draws: int, chosen: str | None) -> Iterator[dict[str, str]]:
    """A row for each kind of density."""
    for name, build in RELEASES.items():
        release = build(POPULATIONS[0].rows)
        if isinstance(release, Density) and chosen in (None, name):
            found = band_coverage(release, draws)
            yield {"release": name} | {key: f"{value:.3f}" for key, value in found.items()}


if __name__ == "__main__":
    main()
