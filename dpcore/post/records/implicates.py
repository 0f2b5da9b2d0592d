"""Implicates: several files of records, which differ from each other as the noise may have been.

Each is fitted to the unbiased tables plus noise that is drawn again:

    records --moved as little as needed--> near the tables T + e_1      implicate 1
            --                         --> near the tables T + e_2      implicate 2, ...

The tables are not smoothed first: shrunken ones would be biased, and their spread too small.  The
redraws are centred, so that the mean of all implicates is as near to T as one fit to T is
(``dpcore.estimates.combine`` has the rule and its proof).

**Counts of records are not negative.**  Records reach the nearest tables that are counts, so where many
cells are nearly empty, implicates differ less than the noise.  To come near the tables costs nothing: a
projection on a convex set that holds the exact tables brings them nearer to these, in the metric of the
noise, so the variance of the unbiased tables is large enough, on average
over all directions.  The redraws are made larger (``widened``) until the slopes of one column on another
spread so much, for the pair in the middle.

>>> noisy = Margin((0, 1), np.array([[310.0, 90.0], [60.0, 540.0]]), 100.0)
>>> noise = np.random.default_rng(1).normal(0, 10, (2, 2, 8))
>>> start = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 250, axis=0)
>>> made = fit_implicates((2, 2), [noisy], [noise], start, np.random.default_rng(7))
>>> made.shape, bool(abs(made[:, :, 0].mean() - 0.6) < 0.002)
((8, 1000, 2), True)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.records.fit import fit_records
from dpcore.post.records.nested import Nested
from dpcore.post.records.rules import Rule
from dpcore.post.tables.margins import Margin
from dpcore.progress import report

SWEEPS = 100
TOLERANCE = 0.002
"""A fit that stops early stays near its start, and all implicates near each other."""

WIDEST = 2.0
"""Redraws are at most this many times as large as the noise."""


def fit_implicates(
    sizes: Sequence[int],
    margins: Sequence[Margin],
    noises: Sequence[Floats],
    start: Integers,
    generator: np.random.Generator,
    rules: Sequence[Rule] = (),
    nested: Sequence[Nested] = (),
) -> Integers:
    """Records (M, rows, k) near unbiased tables with their noise drawn again M times.

    Post-processing: everything is public.  ``margins``: tables that agree, with their variances;
    ``noises``: for each of them M draws of its noise, along a last axis; ``start``: (rows, k) records,
    as many as the survey has.
    """
    redraws = [centred_redraws(noise) for noise in noises]
    made = []
    for m in range(noises[0].shape[-1]):
        targets = [
            Margin(margin.attributes, margin.table + again[..., m], margin.variance)
            for margin, again in zip(margins, redraws, strict=True)
        ]
        made.append(
            fit_records(
                sizes,
                targets,
                len(start),
                generator,
                start=start,
                sweeps=SWEEPS,
                tolerance=TOLERANCE,
                rules=rules,
                nested=nested,
                progress=partial(report, f"records of implicate {m + 1} fitted, sweeps"),
            )
        )
    return np.stack(made)


def widened(reached: Floats) -> float:
    """How much larger redraws must be where slopes spread ``reached`` times as much as their errors.

    What larger redraws add is cut off in part as well, hence the power.
    """
    return float(np.clip(np.median(reached) ** -1.5, 1.0, WIDEST)) if len(reached) else 1.0


def centred_redraws(noise: Floats) -> Floats:
    """M draws along the last axis, less their mean, times sqrt(M / (M + 1))."""
    number = noise.shape[-1]
    spread = noise - noise.mean(axis=-1, keepdims=True)
    return np.asarray(spread * (number / (number + 1)) ** 0.5)
