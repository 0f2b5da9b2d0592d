"""Time and memory of a sparse histogram against the size of its domain.

    python -m benchmarks.scale.sparse --plot sparse.png

draws thresholded histograms of 10**5 occupied cells in domains of 2**16 ... 2**60 cells (all 65,536
cells are occupied in the smallest) and prints one JSON line for each, from a process of its own:

    seconds     processor seconds of the privacy line and the published table, the least of ``--draws``
    peak_mib    peak memory of the process
    published   cells above the threshold

The last line compares the domains with 10**5 occupied cells: the largest over the smallest.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.sampling.source import SystemSource

BITS = (16, 20, 30, 40, 50, 60)
OCCUPIED = 10**5
COUNT = 1000


def main() -> None:
    """Measure every domain in a process of its own; draw the plot if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=25, help="default: 25")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures as a picture")
    parser.add_argument("--bits", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bits:
        print(json.dumps(measure(options.bits, options.draws)))
        return
    found = []
    for bits in BITS:
        command = [sys.executable, "-m", "benchmarks.scale.sparse", "--bits", str(bits)]
        done = subprocess.run(
            [*command, "--draws", str(options.draws)], check=True, capture_output=True, text=True
        )
        print(done.stdout, end="", flush=True)
        found.append(json.loads(done.stdout))
    equal = [line for line in found if line["occupied"] == OCCUPIED]
    ratios = {
        f"{key}_ratio": round(max(x[key] for x in equal) / min(x[key] for x in equal), 2)
        for key in ("seconds", "peak_mib")
    }
    print(json.dumps(ratios))
    if options.plot:
        plot(found, options.plot)


def measure(bits: int, draws: int) -> dict[str, object]:
    """The figures of one domain of 2**bits cells."""
    domain = Domain((Grid("cell", 0.0, 1.0, 2**bits),))
    random = np.random.default_rng(bits)
    if domain.size <= OCCUPIED:
        cells = np.arange(domain.size)
    else:
        cells = np.unique(random.integers(domain.size, size=2 * OCCUPIED))
        cells = np.sort(random.choice(cells, OCCUPIED, replace=False))
    tally = Tally(domain, cells, np.full(len(cells), COUNT))
    rows = int(tally.counts.sum())
    release = ThresholdedHistogram("sparse", domain, rows, Budget(Fraction(1)))
    seconds = []
    for _ in range(draws):
        start = time.process_time()
        exact = release.statistic(tally)
        noisy = perturb(exact, release.mechanism, release.share, SystemSource())
        release.publish(noisy)
        seconds.append(time.process_time() - start)
    return {
        "domain": f"2**{bits}",
        "bits": bits,
        "occupied": len(cells),
        "published": len(noisy.values),
        "seconds": round(min(seconds), 4),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def plot(found: list[dict[str, float]], path: Path) -> None:
    """Time and memory against the domain."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    bits = [line["bits"] for line in found]
    for axes, key, label in (
        (left, "seconds", "processor seconds of a release"),
        (right, "peak_mib", "memory of the process, MiB"),
    ):
        axes.plot(bits, [line[key] for line in found], "o-")
        axes.set(xlabel="cells in the domain, log2", ylabel=label, ylim=(0, None))
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
