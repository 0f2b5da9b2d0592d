"""How fast dprelease and OpenDP draw exact integer noise, in the same run.

    python -m benchmarks.noise

prints one JSON line per law and scale: values per second of processor time for a table of 65,536
cells, and ``ratio``, ours over OpenDP's.  Ours draws from the operating system's generator, and its
caches are emptied before every draw, so that the time includes building its inversion table (``warm``
is the throughput with full caches).  OpenDP perturbs a list of zeros.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from statistics import median

import opendp.prelude as dp

from dpcore.sampling import discrete_gaussian, discrete_laplace
from dpcore.sampling.source import SystemSource

CELLS = 65_536
SCALES = {"discrete laplace": ("2", "20", "200"), "discrete gaussian": ("1", "100", "10000")}
"""The scale of Laplace noise (2 / alpha for alpha = 1, 0.1, 0.01), sigma of Gaussian noise."""


def main() -> None:
    """Print the measurements of both laws at all scales."""
    dp.enable_features("contrib")
    for law, scales in SCALES.items():
        for scale in scales:
            print(json.dumps(compare(law, Fraction(scale))), flush=True)


def compare(law: str, scale: Fraction) -> dict[str, object]:
    """Processor-time throughput of ours (cold and warm) and of OpenDP's, in values per second."""
    draw = _ours(law, scale)
    theirs = _opendp(law, scale)
    cold = _throughput(draw, repetitions=15, prepare=_forget_tables)
    warm = _throughput(draw, repetitions=15)
    opendp = _throughput(theirs, repetitions=3)
    return {
        "law": law,
        "scale": str(scale),
        "cells": CELLS,
        "ours": round(cold),
        "warm": round(warm),
        "opendp": round(opendp),
        "ratio": round(cold / opendp, 1),
    }


def _ours(law: str, scale: Fraction) -> Callable[[], object]:
    source = SystemSource()
    if law == "discrete laplace":
        return partial(discrete_laplace.discrete_laplace, scale, CELLS, source)
    return partial(discrete_gaussian.discrete_gaussian, scale**2, CELLS, source)


def _opendp(law: str, scale: Fraction) -> Callable[[], object]:
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    zeros = [0] * CELLS
    if law == "discrete laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(scale))
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=float(scale))
    return partial(measurement, zeros)


def _forget_tables() -> None:
    discrete_laplace._table.cache_clear()
    discrete_gaussian._table.cache_clear()


def _throughput(
    draw: Callable[[], object],
    repetitions: int,
    prepare: Callable[[], None] = lambda: None,
) -> float:
    draw()
    seconds = []
    for _ in range(repetitions):
        prepare()
        start = time.process_time()
        draw()
        seconds.append(time.process_time() - start)
    return CELLS / median(seconds)


if __name__ == "__main__":
    main()
