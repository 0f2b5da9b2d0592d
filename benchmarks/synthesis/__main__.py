"""Total variation, time and memory of private synthetic records on a public table.

    python -m benchmarks.synthesis --dataset nltcs --alpha 1 --beta 1e-9 --relation add-remove --draws 5

prints one JSON line a draw.  ``tv1``, ``tv2``, ``tv3`` are the mean total variation over all 1-, 2-
and 3-way margins between as many synthetic as real records, and ``tv1_max``, ... the worst; exact,
over all sets of columns.  ``seconds`` and ``cpu_seconds`` are for everything from the tally to the
records, and ``peak_mb`` is the memory of the process until then, Python and its libraries included.
``--bootstrap`` compares real records drawn with replacement instead: what no private method needs to
beat.  With ``--beta 0`` the noise is discrete Laplace, otherwise discrete Gaussian.

``--ways`` says whether all pairs or all triples of columns are measured; by default triples where all
columns have two categories, and pairs elsewhere.  ``--chosen 20`` measures again that many pairs,
which the first noisy tables choose.  ``--compress 32`` measures pairs of groups where a column has more
than 32 cells; ``made_up_wide`` (three columns of 2,000 categories) cannot do without.

``relation`` says which tables are neighbours: those that differ in one record (replace-one), or of
which one has a record more (add-remove), as for most public implementations.  The second is a weaker
promise: of k tables a record touches k cells instead of 2k, so L1 sensitivity k instead of 2k and
squared L2 sensitivity k instead of 2k; but the number of records is private then, and is told by the
noisy tables alone.  Compare at the same relation only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import get_args

from benchmarks.synthesis.measure import bootstrapped, measured
from benchmarks.synthesis.tables import TABLES
from dpcore.adjacency import Relation
from dpcore.budget import Budget

ALL_BINARY = ("nltcs",)
DEFAULT_DATA = Path(__file__).parents[3] / "shared" / "data"


def main() -> None:
    """Print one JSON line a draw."""
    options = _options()
    folder = Path(os.environ.get("DPRELEASE_TEST_DATA", DEFAULT_DATA))
    if not folder.is_dir():
        sys.exit(f"{folder}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    share = Budget(options.alpha, options.beta)
    ways = options.ways or (3 if options.dataset in ALL_BINARY and not options.chosen else 2)
    for number in range(options.draws):
        # A process of its own for each draw: its peak memory is that of the draw.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            if options.bootstrap:
                found = pool.apply(bootstrapped, (folder, options.dataset, number))
            else:
                chosen, keep = options.chosen, options.compress
                what = (folder, options.dataset, options.relation, share, ways, chosen, keep)
                try:
                    found = pool.apply(measured, what)
                except ValueError as error:
                    sys.exit(f"refused: {error}")
        print(json.dumps({"dataset": options.dataset, "draw": number} | found), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.synthesis", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--dataset", choices=TABLES, required=True)
    parser.add_argument("--alpha", type=Fraction, default=Fraction(1), help="default: 1")
    parser.add_argument("--beta", type=Fraction, default=Fraction("1e-9"), help="default: 1e-9")
    parser.add_argument("--relation", choices=get_args(Relation), default="replace-one")
    parser.add_argument("--ways", type=int, choices=(2, 3), help="tables of pairs or of triples")
    parser.add_argument("--chosen", type=int, default=0, help="pairs to measure again; default: 0")
    parser.add_argument("--compress", type=int, default=0, help="groups of wide columns to keep")
    parser.add_argument("--draws", type=int, default=5, help="default: 5")
    parser.add_argument("--bootstrap", action="store_true", help="resample, without privacy")
    options = parser.parse_args()
    if options.chosen < 0 or (options.chosen and options.ways == 3):
        parser.error("--chosen must not be negative, and is for pairs")
    if options.compress < 0 or (options.compress and options.chosen):
        parser.error("--compress must not be negative, and does not go with --chosen")
    if options.draws < 1 or options.alpha <= 0 or not 0 <= options.beta < 1:
        parser.error("--draws and --alpha must be positive, and --beta at least 0 and below 1")
    return options


if __name__ == "__main__":
    main()
