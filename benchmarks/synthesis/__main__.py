"""Total variation, time and memory of private synthetic records on a public table.

    python -m benchmarks.synthesis --dataset nltcs --alpha 1 --beta 1e-9 --relation add-remove --draws 5

prints one JSON line for each draw.  ``tv1``, ``tv2``, ``tv3`` are the mean total variation over all
1-, 2- and 3-way margins between the real and as many synthetic records, and ``tv1_max``, ... the worst;
exact, over all sets of columns.  ``seconds`` and ``cpu_seconds`` are for everything from the tally to
the records, and ``peak_mb`` is the memory of the process until then, Python and its libraries included.
``--bootstrap`` compares real records drawn with replacement instead, which are not private.  With
``--beta 0`` the noise is discrete Laplace, otherwise discrete Gaussian.

``--ways`` sets whether all pairs or all triples of columns are measured; by default both for
``nltcs``, whose columns are binary, and pairs elsewhere.
``--compress 32`` merges the cells of a column into 32 groups if it has more; it is meant for
``made_up_wide`` (three columns of 2,000 categories).

``--relation`` sets which tables are neighbours: those in which one record has other values
(replace-one), or of which one has one record more (add-remove), as in most public implementations.  The
second is a weaker promise: over k tables, L1 sensitivity and squared L2 sensitivity are k instead of 2k.
The number of records is then private, and is estimated from the noisy tables.  Compare results only
within one relation.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from fractions import Fraction
from typing import get_args

from benchmarks import DATA
from benchmarks.synthesis.measure import bootstrapped, measured
from benchmarks.synthesis.tables import TABLES
from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Relation

ALL_BINARY = ("nltcs",)


def main() -> None:
    """Print one JSON line for each draw."""
    options = _options()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    share = Budget(options.alpha, options.beta)
    usual = [2, 3] if options.dataset in ALL_BINARY else [2]
    ways = options.ways or usual
    for number in range(options.draws):
        # A process of its own for each draw: its peak memory is that of the draw.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            if options.bootstrap:
                found = pool.apply(bootstrapped, (DATA, options.dataset, number))
            else:
                what = (DATA, options.dataset, options.relation, share, ways, options.compress)
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
    parser.add_argument(
        "--ways",
        type=int,
        nargs="+",
        choices=(2, 3),
        help="tables of pairs, of triples, or of both",
    )
    parser.add_argument("--compress", type=int, default=0, help="groups of wide columns to keep")
    parser.add_argument("--draws", type=int, default=5, help="default: 5")
    parser.add_argument("--bootstrap", action="store_true", help="resample, without privacy")
    options = parser.parse_args()
    if options.compress < 0:
        parser.error("--compress must not be negative")
    if options.draws < 1 or options.alpha <= 0 or not 0 <= options.beta < 1:
        parser.error("--draws and --alpha must be positive, and --beta at least 0 and below 1")
    return options


if __name__ == "__main__":
    main()
