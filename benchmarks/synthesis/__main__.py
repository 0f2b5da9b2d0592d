"""Total variation, time and memory of private synthetic records on a public table.

    python -m benchmarks.synthesis --dataset nltcs --alpha 1 --beta 1e-9 --relation add-remove --draws 5

prints one JSON line a draw.  ``tv1``, ``tv2``, ``tv3`` are the mean total variation over all 1-, 2-
and 3-way margins between as many synthetic as real records, and ``tv1_max``, ... the worst; exact,
over all sets of columns.  ``seconds`` and ``cpu_seconds`` are for everything from the tally to the
records, and ``peak_mb`` is the memory of the process until then, Python and its libraries included.
``--bootstrap`` compares real records drawn with replacement instead: what no private method needs to
beat.  With ``--beta 0`` the noise is discrete Laplace, otherwise discrete Gaussian.

``relation`` says for which neighbours the noise is calibrated.  Releases of dprelease promise
(alpha, beta) for tables that differ in one record (replace-one).  Most public implementations
promise it for tables of which one has a record more (add-remove), a weaker promise: of k tables a
record touches k cells instead of 2k, so L1 sensitivity k instead of 2k and squared L2 sensitivity k
instead of 2k.  For a comparison on their terms, and for nothing else, ``add-remove`` draws with
these; no release does.  It also takes the number of records as known, as all releases do; who keeps
to add-remove must estimate it, within a few records at these budgets.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthesis.tables import TABLES
from dpcore.budget import Budget
from dpcore.domain import Domain, Tally
from dpcore.evaluation import margin_errors
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.privacy_line import perturb
from dpcore.releases.microdata import Microdata
from dpcore.sampling.source import SystemSource

DEFAULT_DATA = Path(__file__).parents[3] / "shared" / "data"
RELATIONS = ("add-remove", "replace-one")


@dataclass(frozen=True)
class AddRemoveMicrodata(Microdata):
    """With the noise that add-remove neighbours would need: for comparisons, never for release."""

    @cached_property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        sensitivity = Fraction(len(self.sets))  # L1, and also the square of L2
        if self.noise == "discrete-gaussian":
            return DiscreteGaussian.within(self.share, self.cells, sensitivity)
        return DiscreteLaplace.within(self.share, self.cells, sensitivity)


def main() -> None:
    """Print one JSON line a draw."""
    options = _options()
    folder = Path(os.environ.get("DPRELEASE_TEST_DATA", DEFAULT_DATA))
    if not folder.is_dir():
        sys.exit(f"{folder}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    spawn = multiprocessing.get_context("spawn")
    for number in range(options.draws):
        # A process of its own for each draw: its peak memory is that of the draw.
        with spawn.Pool(1) as pool:
            arguments = (options.dataset, folder, options, number)
            print(json.dumps(pool.apply(measure, arguments)), flush=True)


def measure(dataset: str, folder: Path, options: argparse.Namespace, number: int) -> dict[str, Any]:
    """One draw: what it was and how good it is."""
    domain, codes = TABLES[dataset](folder)
    about = {"dataset": dataset, "draw": number}
    if options.bootstrap:
        generator = np.random.default_rng(number)
        sampled = codes[generator.integers(0, len(codes), len(codes))]
        return about | {"bootstrap": True} | errors(codes, sampled, domain)
    share = Budget(options.alpha, options.beta)
    kind = AddRemoveMicrodata if options.relation == "add-remove" else Microdata
    noise = "discrete-gaussian" if options.beta else "discrete-laplace"
    release = kind("benchmark", domain, len(codes), share, noise=noise)
    wall, cpu = time.perf_counter(), time.process_time()
    synthetic = synthesize(release, codes)
    return (
        about
        | {
            "relation": options.relation,
            "alpha": float(options.alpha),
            "beta": float(options.beta),
            "mechanism": noise,
            "stddev": round(release.mechanism.stddev, 2),
            "seconds": round(time.perf_counter() - wall, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }
        | errors(codes, synthetic, domain)
    )


def synthesize(release: Microdata, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(rows, columns) synthetic codes, through the privacy line."""
    cells, counts = np.unique(release.domain.pack(codes), return_counts=True)
    exact = release.statistic(Tally(release.domain, cells, counts.astype(np.int64)))
    noisy = perturb(exact, release.mechanism, release.share, SystemSource())
    return release.sample(noisy, release.rows)[1]


def errors(
    codes: NDArray[np.int64], synthetic: NDArray[np.int64], domain: Domain
) -> dict[str, float]:
    """Mean and worst total variation of margins."""
    found: dict[str, float] = {}
    for ways in (1, 2, 3):
        error = margin_errors(codes, synthetic, domain.shape, ways)
        found |= {f"tv{ways}": round(error.mean, 5), f"tv{ways}_max": round(error.worst, 5)}
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.synthesis", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--dataset", choices=TABLES, required=True)
    parser.add_argument("--alpha", type=Fraction, default=Fraction(1), help="default: 1")
    parser.add_argument("--beta", type=Fraction, default=Fraction("1e-9"), help="default: 1e-9")
    parser.add_argument("--relation", choices=RELATIONS, default="replace-one")
    parser.add_argument("--draws", type=int, default=5, help="default: 5")
    parser.add_argument("--bootstrap", action="store_true", help="resample, without privacy")
    options = parser.parse_args()
    if options.draws < 1 or options.alpha <= 0 or not 0 <= options.beta < 1:
        parser.error("--draws and --alpha must be positive, and --beta at least 0 and below 1")
    return options


if __name__ == "__main__":
    main()
