"""Coverage of every published interval, by simulation over made-up populations.

    python -m benchmarks.coverage --draws 200

prints one line for each release, population and published column with an error: ``cover``, the share
of 90% intervals that hold the number without noise; ``doubt``, how far off that share may be (one
standard error, for so many draws); ``large``, the share where the number is more than three standard
errors from zero; and ``rms``, the root mean square of what was stated as standard error over that of
the errors made.  Every draw is of the mechanism itself, through the privacy line, and everything is
published anew.
"""

from __future__ import annotations

import argparse

from benchmarks.coverage.measure import measure
from benchmarks.coverage.populations import POPULATIONS, RELEASES, tally
from tasks.explain import text_table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--draws", type=int, default=200, help="draws of each release")
    parser.add_argument("--release", choices=sorted(RELEASES), help="this one alone")
    options = parser.parse_args()
    rows = []
    for name, build in RELEASES.items():
        if options.release in (None, name):
            for i, population in enumerate(POPULATIONS):
                release = build(population.rows)
                records = tally(population, release.domain)
                found = measure(release, records, options.draws, seed=i * options.draws)
                rows += [{"release": name, "population": population.name, **c.row()} for c in found]
    print(text_table(rows))


if __name__ == "__main__":
    main()
