"""How far correlations of numbers survive their bins, on the public excerpt of the ACS.

    python -m benchmarks.synthesis.ranks --alpha 1 10 --draws 3

prints one JSON line for the exact bins, which is what a release of no noise would give, and for each
draw of records from all pairs: the correlation of the two survey weights, and the mean absolute error
of all correlations of numeric columns.  ``independent``: the same records with independent positions
inside their bins.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import DATA
from benchmarks.synthesis.measure import synthesize
from benchmarks.synthesis.tables import acs_nist_ma2019
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.releases.tables.microdata import Microdata
from dpcore.synthesis.decode import decode_records

WEIGHTS = ("PWGTP", "WGTP")
BETA = Fraction("1e-9")


def main() -> None:
    """Print one JSON line for the exact bins, and one for each draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis.ranks")
    parser.add_argument("--alpha", type=Fraction, nargs="+", default=[Fraction(1), Fraction(10)])
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    domain, codes = acs_nist_ma2019(DATA)
    domain = Domain(tuple(map(_whole, domain.axes)))
    frame = pd.read_parquet(DATA / "acs_nist_ma2019" / "ma2019.parquet")
    names = [axis.name for axis in domain.axes if isinstance(axis, Bins)]
    exact = frame[names].astype("Float64").astype(float).corr().to_numpy()
    print(json.dumps({"records": "exact bins"} | compared(domain, codes, names, exact)))
    for alpha in options.alpha:
        release = Microdata(
            "benchmark",
            domain,
            len(codes),
            Budget(alpha, BETA),
            sets=tuple(combinations(range(len(domain.axes)), 2)),
            noise="discrete-gaussian",
            aim="records",
        )
        for _ in range(options.draws):
            made = synthesize(release, codes)
            facts = compared(domain, made, names, exact)
            print(json.dumps({"records": f"alpha {float(alpha):g}"} | facts), flush=True)


def compared(domain: Domain, codes: Integers, names: list[str], exact: Floats) -> dict[str, Any]:
    """Correlations of the records' numbers, and of the same codes with independent positions."""
    places = tuple(names.index(name) for name in WEIGHTS)
    facts: dict[str, Any] = {"survey": round(float(exact[places]), 3)}
    together = decode_records(domain, codes, {}, np.random.default_rng(0))
    alone = {
        name: decode_records(
            domain.select((name,)),
            codes[:, [domain.names.index(name)]],
            {},
            np.random.default_rng(i),
        )[name]
        for i, name in enumerate(names)
    }
    for key, columns in (("records", together), ("independent", alone)):
        found = correlations(columns, names)
        error = np.abs(found - exact)[np.triu_indices(len(names), 1)].mean()
        facts |= {f"weights_{key}": round(float(found[places]), 3), f"error_{key}": round(error, 4)}
    return facts


def correlations(columns: Mapping[str, NDArray[Any]], names: list[str]) -> Floats:
    """Of all pairs of columns, over the records in which neither is null."""
    numbers = {
        name: np.ma.filled(np.ma.asarray(columns[name], dtype=float), np.nan) for name in names
    }
    return np.asarray(pd.DataFrame(numbers).corr())


def _whole(axis: Any) -> Any:
    whole = isinstance(axis, Bins) and axis.name != "DENSITY"
    return replace(axis, integer=True) if whole else axis


if __name__ == "__main__":
    main()
