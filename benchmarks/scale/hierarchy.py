"""What a hierarchy of regions costs, and how wrong its sums are.

    python -m benchmarks.scale.hierarchy

prints two JSON lines.  The first, from a process of its own, is one release of 10**6 smallest regions
with 8 cells each, below 3,000 counties and 50 states: processor seconds of each step, of which
``statistic``, ``noise``, ``publish`` and ``write`` are the release; ``peak_mib`` of the process; and
``over_noise_and_files``, the release over drawing its noise and writing its Parquet files, which no
method that publishes these tables avoids.

The second is about a smaller tree at the same shape: the standard error of the number of people in a
state, and in 100 regions anywhere, in records.  ``stated`` is the exact one of ``sum_variance``,
``seen`` that of draws, ``levels`` what each level gives alone in the same draw, ``best`` the least of
these, and ``alone`` what the best level would give if it had the whole budget.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact, Noisy
from dpcore.releases.tables.hierarchy import Hierarchy
from dpcore.sampling.source import SystemSource
from schemas.survey.columns import CategoricalColumn
from tasks.bundle.parquet import write_table

STATES, COUNTIES, CELLS = 50, 60, 8
SHARE = Budget.of("1", "1e-6")
UNION = 100


def main() -> None:
    """Measure the large tree in a process of its own, then the errors of a smaller one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--leaves", type=int, default=10**6, help="default: 1000000")
    parser.add_argument("--draws", type=int, default=200, help="default: 200")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(cost(options.leaves)))
        return
    command = [sys.executable, "-m", "benchmarks.scale.hierarchy", "--alone"]
    subprocess.run([*command, "--leaves", str(options.leaves)], check=True)
    print(json.dumps(errors(options.draws)))


def tree(leaves: int, cells: int) -> tuple[Hierarchy, Tally]:
    """A release over about so many leaves, half of the possible codes, and a made-up table."""
    random = np.random.default_rng(leaves)
    codes = 2 * leaves // (STATES * COUNTIES)
    places = (
        Categories("state", tuple(f"{i:02}" for i in range(STATES))),
        Categories("county", tuple(f"{i:03}" for i in range(COUNTIES))),
        Categories("tract", tuple(f"{i:06}" for i in range(codes))),
    )
    chosen = random.random(STATES * COUNTIES * codes) < 0.5
    regions = Regions(Domain(places), np.flatnonzero(chosen))
    groups = () if cells == 1 else (Categories("group", tuple("abcdefgh"[:cells])),)
    domain = Domain((*places, *groups))
    sizes = random.gamma(0.5, 20, len(regions.leaves))  # few are large
    counts = random.poisson(np.repeat(sizes, cells) / cells)
    where = np.add.outer(cells * regions.leaves, np.arange(cells)).ravel()[counts > 0]
    tally = Tally(domain, where, counts[counts > 0])
    return (
        Hierarchy("people", domain, int(counts.sum()), SHARE, regions, "discrete-gaussian"),
        tally,
    )


def cost(leaves: int) -> dict[str, object]:
    """Processor seconds of each step of one release, and the memory of all."""
    start = time.process_time()
    seconds: dict[str, float] = {}

    def lap(step: str) -> None:
        nonlocal start
        seconds[step], start = round(time.process_time() - start, 2), time.process_time()

    release, tally = tree(leaves, CELLS)
    lap("made up")
    exact = release.statistic(tally)
    lap("statistic")
    noisy = perturb(exact, release.mechanism, release.share, SystemSource())
    lap("noise")
    published = release.publish(noisy)
    lap("publish")
    with tempfile.TemporaryDirectory() as folder:
        anything = CategoricalColumn(type="categorical", categories=["any"])
        survey = dict.fromkeys(release.domain.names, anything)
        files = [write_table(Path(folder), table, survey, {}) for table in published.tables]
        lap("write")
    spent = sum(seconds[step] for step in ("statistic", "noise", "publish", "write"))
    return {
        "leaves": len(release.regions.leaves),
        "cells": release.mechanism_size,
        "seconds": seconds,
        "release_seconds": round(spent, 1),
        "over_noise_and_files": round(spent / (seconds["noise"] + seconds["write"]), 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "file_mib": round(sum(file.bytes for file in files) / 2**20),
    }


def errors(draws: int) -> dict[str, object]:
    """Standard errors of two sums, of the release and of each of its levels alone."""
    release, tally = tree(10_000, 1)
    regions, exact = release.regions, release.statistic(tally)
    random = np.random.default_rng(1)
    tracts = regions.sizes[-1]
    union = np.zeros((tracts, 1))
    union[random.choice(len(regions.leaves), UNION, replace=False)] = 1
    state = np.zeros((regions.sizes[1], 1))
    state[7] = 1
    found: dict[str, object] = {"leaves": len(regions.leaves), "draws": draws}
    for name, level, weights in (("state", 1, state), ("union", regions.depth, union)):
        table = release.table_name(release.level_domain(level))
        stated = release.sum_variance({table: weights}) ** 0.5
        levels = alone(release, level, weights)
        seen = drawn(release, exact, level, weights, draws)
        found[name] = {
            "stated": round(stated, 2),
            "seen": round(seen, 2),
            "levels": {key: round(value, 2) for key, value in levels.items()},
            "best": round(min(levels.values()), 2),
            "over_best": round(stated / min(levels.values()), 3),
            "alone": round(min(levels.values()) / len(release.measured) ** 0.5, 2),
        }
    return found


def alone(release: Hierarchy, level: int, weights: Floats) -> dict[str, float]:
    """The standard error of a sum from the measurements of one level; of those that can add it up."""
    found = {}
    for below in range(level, release.regions.depth + 1):
        found[release.regions.domain.names[below - 1]] = release.mechanism.stddev * float(
            np.sum(weights**2) ** 0.5
        )
        if below < release.regions.depth:
            weights = weights[release.regions.parents[below + 1]]
    return found


def drawn(release: Hierarchy, exact: Exact, level: int, weights: Floats, draws: int) -> float:
    """The root mean square of a sum's error over draws across the privacy line."""
    truth = release.estimates(exact._statistic.values)[level]  # the table is made up
    errors = []
    for _ in range(draws):
        noisy: Noisy = perturb(exact, release.mechanism, release.share, SystemSource())
        errors.append(np.sum(weights * (release.estimates(noisy.values)[level] - truth)))
    return float(np.mean(np.square(errors)) ** 0.5)


if __name__ == "__main__":
    main()
