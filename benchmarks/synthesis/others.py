"""Synthetic records of MST, SWIFT and AIM on the same tables, by the public library dpsynth.

    python -m benchmarks.synthesis.others --method swift --dataset nltcs --alpha 1 --beta 1e-9

prints one JSON line for each draw, with the errors of ``python -m benchmarks.synthesis``; neighbours
differ in one record more (add-remove), and the number of records is the method's own estimate.  Run it
in an environment that has dpsynth (github.com/google/dpsynth) and its requirements, pandas and pyarrow.

All columns are categorical with the cells of ``tables``.  Settings are those of the library, with a
tenth of the budget for tables of one column; ``--clique`` limits the cells of a clique of SWIFT, and
``--rounds`` AIM.  ``--save FOLDER`` keeps the records of each draw as NUMBER.parquet, for ``--records``
of ``second_look``.  Values are drawn uniformly in their cells, one of the ways of the library; its
default, the middle of each cell, would give more records away.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import DATA
from benchmarks.synthesis.measure import errors
from benchmarks.synthesis.tables import TABLES, decoded
from dpcore.accounting.analytic import analytic_gaussian_scale

METHODS = ("mst", "swift", "aim")


def main() -> None:
    """Print one JSON line for each draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis.others")
    parser.add_argument("--method", type=str.lower, choices=METHODS, required=True)
    parser.add_argument("--dataset", choices=TABLES, required=True)
    parser.add_argument("--alpha", type=float, default=1.0, help="default: 1")
    parser.add_argument("--beta", type=float, default=1e-9, help="default: 1e-9")
    parser.add_argument("--clique", type=float, default=1e5, help="default: 1e5")
    parser.add_argument("--rounds", type=int, help="of AIM; default: 16 for each column")
    parser.add_argument("--draws", type=int, default=1, help="default: 1")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep the records")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    from dpsynth import discrete_mechanisms as library  # only in an environment of its own
    from mbi import Dataset
    from mbi import Domain as TheirDomain

    config: Any = {
        "mst": library.MSTConfig(),
        "swift": library.SWIFTConfig(),
        "aim": library.AIMConfig(max_rounds=options.rounds),
    }[options.method]
    if options.method == "swift":
        config = replace(config, max_clique_size=options.clique)
    domain, codes = TABLES[options.dataset](DATA)
    names = [axis.name for axis in domain.axes]
    private = Dataset(
        {name: codes[:, i] for i, name in enumerate(names)}, TheirDomain(names, domain.shape)
    )
    for number in range(options.draws):
        wall, cpu = time.perf_counter(), time.process_time()
        mechanism = calibrated(library.DiscreteConfig(mechanism=config), options)
        found = mechanism(np.random.default_rng(number), private).synthetic_data.to_dict()
        synthetic = np.stack([np.asarray(found[name]) for name in names], axis=1).astype(np.int64)
        facts = {
            "method": options.method,
            "dataset": options.dataset,
            "alpha": options.alpha,
            "beta": options.beta,
            "draw": number,
            "seconds": round(time.perf_counter() - wall, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }
        if options.save:
            options.save.mkdir(parents=True, exist_ok=True)
            records = decoded(domain, synthetic, np.random.default_rng(number))
            records.to_parquet(options.save / f"{number}.parquet")
        print(json.dumps(facts | errors(codes, synthetic, domain)), flush=True)


def calibrated(config: Any, options: argparse.Namespace) -> Any:
    """The method at (alpha, beta).

    All noise of SWIFT is Gaussian, so its exact price is that of one draw; the library's own search for
    it divides by zero.
    """
    if options.method == "swift":
        scale = analytic_gaussian_scale(options.alpha, options.beta)
        return config.configure(zcdp_rho=1 / (2 * scale**2))
    return config.calibrate(epsilon=options.alpha, delta=options.beta)


if __name__ == "__main__":
    main()
