"""Thresholded against plain noise on a large, mostly empty histogram (Hall 2012, figure 2.4).

    python -m benchmarks.sparse_histogram --draws 20

prints one JSON line about the table of 16 disabilities in the National Long Term Care Survey: 65,536
cells, of which one in twenty is occupied.  ``l1`` is the mean over the draws of the summed absolute
error of all cells, ``l1_stderr`` the standard error of that mean, ``seconds`` the mean time of a draw
with what follows it:

    sparse            noise on every cell, only counts above tau kept (``tau``)
    plain             discrete Laplace noise on every cell, as drawn; negative counts stay
    plain_clipped     the same draw with negative counts set to zero, as in the figure
    plain_projected   the same draw made non-negative whole numbers that add up to n

All four cost the same alpha.  Publishing nothing at all would have the error n.  The figure says that
thresholding "massively improves" on plain noise, as it does on plain and plain_clipped.  The thesis
does not try to project on the public n: that helps plain noise nearly as much, and more at alpha = 4.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from dpcore.budget import Budget
from dpcore.domain import Categories, Domain, Tally
from dpcore.mechanisms import ThresholdedLaplace
from dpcore.privacy_line import perturb
from dpcore.releases.histogram import Histogram
from dpcore.sampling.source import SystemSource
from dpcore.statistic import Noisy

DEFAULT_DATA = Path(__file__).parents[2] / "shared" / "data"
ITEMS = tuple(f"v{i:02}" for i in range(1, 17))


def main() -> None:
    """Print the comparison as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=20, help="default: 20")
    parser.add_argument("--alpha", type=Fraction, default=Fraction(1), help="default: 1")
    options = parser.parse_args()
    if options.draws < 2 or options.alpha <= 0:
        parser.error("--draws must be at least 2, and --alpha positive")
    table = Path(os.environ.get("DPRELEASE_TEST_DATA", DEFAULT_DATA)) / "nltcs" / "nltcs.parquet"
    if not table.is_file():
        sys.exit(
            f"{table}: not found; set DPRELEASE_TEST_DATA to the folder that holds the file"
            " nltcs/nltcs.parquet, one row per person with columns v01 to v16 of 0 and 1"
        )
    print(json.dumps(compare(read_tally(table), options.alpha, options.draws)))


def read_tally(table: Path) -> Tally:
    """The survey as a tally over all answer patterns."""
    columns = parquet.read_table(table, columns=list(ITEMS))
    codes = np.column_stack([columns[item].to_numpy() for item in ITEMS]).astype(np.int64)
    domain = Domain(tuple(Categories(item, (0, 1)) for item in ITEMS))
    cells, counts = np.unique(domain.pack(codes), return_counts=True)
    return Tally(domain, cells, counts.astype(np.int64))


def compare(tally: Tally, alpha: Fraction, draws: int) -> dict[str, object]:
    """Errors and times of the four estimates at ``alpha``, each from ``draws`` fresh draws."""
    rows, share = int(tally.counts.sum()), Budget(alpha)
    sparse = Histogram("sparse", tally.domain, rows, share, thresholded=True)
    plain = Histogram("plain", tally.domain, rows, share)
    mechanism = sparse.mechanism
    assert isinstance(mechanism, ThresholdedLaplace)

    def kept_counts(noisy: Noisy) -> NDArray[np.int64]:
        counts = np.zeros(tally.domain.size, dtype=np.int64)
        counts[noisy.cells] = sparse.counts(noisy)
        return counts

    estimates: dict[str, tuple[Histogram, Callable[[Noisy], NDArray[np.int64]]]] = {
        "sparse": (sparse, kept_counts),
        "plain": (plain, lambda noisy: noisy.values),
        "plain_clipped": (plain, lambda noisy: np.maximum(noisy.values, 0)),
        "plain_projected": (plain, plain.counts),
    }
    errors: dict[str, list[int]] = {name: [] for name in estimates}
    seconds = dict.fromkeys(estimates, 0.0)
    truth, source = tally.dense(), SystemSource()
    for _ in range(draws):
        drawn: dict[str, tuple[Noisy, float]] = {}
        for name, (release, finish) in estimates.items():
            if release.name not in drawn:
                start = time.perf_counter()
                noisy = perturb(release.statistic(tally), release.mechanism, share, source)
                drawn[release.name] = noisy, time.perf_counter() - start
            noisy, elapsed = drawn[release.name]
            start = time.perf_counter()
            counts = finish(noisy)
            seconds[name] += (elapsed + time.perf_counter() - start) / draws
            errors[name].append(int(np.abs(counts - truth).sum()))
    return {
        "table": "nltcs",
        "alpha": str(alpha),
        "p": tally.domain.size,
        "q": len(tally.cells),
        "n": rows,
        "tau": mechanism.threshold,
        "draws": draws,
        "l1": {name: round(float(np.mean(values))) for name, values in errors.items()},
        "l1_stderr": {
            name: round(float(np.std(values, ddof=1) / draws**0.5), 1)
            for name, values in errors.items()
        },
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
    }


if __name__ == "__main__":
    main()
