"""One draw of synthetic records from a public table, and how good it is."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.synthesis.tables import TABLES
from dpcore.accounting.budget import Budget
from dpcore.arrays import Integers
from dpcore.domain.adjacency import Adjacency, Relation
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.estimates.distances import margin_errors
from dpcore.line.privacy_line import perturb
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SystemSource

Facts = dict[str, Any]
AnyMicrodata = Microdata | CompressedMicrodata


def measured(
    folder: Path,
    dataset: str,
    relation: Relation,
    share: Budget,
    ways: Sequence[int],
    keep: int = 0,
) -> Facts:
    """Errors, time and memory of one draw; the memory is that of the process so far.

    ``keep``: number of groups of a wide column; 0 for no merging.
    """
    domain, codes = TABLES[dataset](folder)
    noise = "discrete-gaussian" if share.beta else "discrete-laplace"
    kind: Callable[..., AnyMicrodata] = partial(Microdata, aim="records")
    if keep:
        kind = partial(CompressedMicrodata, keep=keep)
    release = kind(
        "benchmark",
        domain,
        len(codes),
        share,
        sets=tuple(s for w in ways for s in combinations(range(len(domain.axes)), w)),
        noise=noise,
        adjacency=Adjacency(relation),
    )
    wall, cpu = time.perf_counter(), time.process_time()
    synthetic = synthesize(release, codes)
    return {
        "relation": relation,
        "alpha": float(share.alpha),
        "beta": float(share.beta),
        "mechanism": noise,
        "ways": ways,
        "keep": keep,
        "seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    } | errors(codes, synthetic, domain)


def bootstrapped(folder: Path, dataset: str, number: int) -> Facts:
    """Errors of the real records drawn with replacement; not private."""
    domain, codes = TABLES[dataset](folder)
    rows = np.random.default_rng(number).integers(0, len(codes), len(codes))
    return {"bootstrap": True} | errors(codes, codes[rows], domain)


def synthesize(release: AnyMicrodata, codes: Integers) -> Integers:
    """(rows, columns) synthetic codes, through the privacy line."""
    cells, counts = np.unique(release.domain.pack(codes), return_counts=True)
    exact = release.statistic(Tally(release.domain, cells, counts.astype(np.int64)))
    noisy = perturb(exact, release.mechanism, release.share, SystemSource())
    return release.sample(noisy, release.rows)[1]


def errors(codes: Integers, synthetic: Integers, domain: Domain) -> dict[str, float]:
    """Mean and worst total variation of margins."""
    found: dict[str, float] = {}
    for ways in (1, 2, 3):
        error = margin_errors(codes, synthetic, domain.shape, ways)
        found |= {f"tv{ways}": round(error.mean, 5), f"tv{ways}_max": round(error.worst, 5)}
    return found
