"""Implicates: several files of records, whose differences show the uncertainty from noise.

Each is fitted to the unbiased tables plus newly drawn noise:

    records --moved as little as needed--> near the tables T + e_1      implicate 1
            --                         --> near the tables T + e_2      implicate 2, ...

The tables are not smoothed first: shrunken tables would be biased, and their spread too small.  The
redraws are centred, so that the mean of all implicates is as near to T as one fit to T is
(``dpcore.estimates.combine`` has the rule and its proof).

**Counts of records are not negative.**  Records reach the nearest tables of counts, so if many cells
are nearly empty, implicates differ by less than the noise.  This adds no error: a projection on a
convex set that contains the exact tables brings the unbiased ones closer to them, in the metric of the
noise, so the variance of the unbiased tables is large enough, on average over all directions.  The
redraws are enlarged (``widened``) until the regression slopes of one column on another vary as much as
their errors, for the median pair.

>>> noisy = Margin((0, 1), np.array([[310.0, 90.0], [60.0, 540.0]]), 100.0)
>>> noise = np.random.default_rng(1).normal(0, 10, (2, 2, 8))
>>> start = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 250, axis=0)
>>> columns = RecordColumns((2, 2))
>>> made = fit_implicates(columns, [noisy], [noise], start, np.random.default_rng(7))
>>> made.shape, bool(abs(made[:, :, 0].mean() - 0.6) < 0.002)
((8, 1000, 2), True)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.fit import fit_records
from dpcore.post.tables.margins import Margin
from dpcore.progress import report

SWEEPS = 100
TOLERANCE = 0.002
"""A small tolerance: fits that stop early stay near their common start, and so near each other."""

WIDEST = 2.0
"""Redraws are at most this many times as large as the noise."""


def fit_implicates(
    columns: RecordColumns,
    margins: Sequence[Margin],
    noises: Sequence[Floats],
    start: Integers,
    generator: np.random.Generator,
) -> Integers:
    """Records (M, rows, k) near unbiased tables to which noise was added again, M times.

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
                columns,
                targets,
                len(start),
                generator,
                start=start,
                sweeps=SWEEPS,
                tolerance=TOLERANCE,
                progress=partial(report, f"records of implicate {m + 1} fitted, sweeps"),
            )
        )
    return np.stack(made)


def widened(reached: Floats) -> float:
    """The factor by which to enlarge redraws, if slopes vary ``reached`` times as much as their errors.

    Part of the enlargement is cut off as well, hence the power.
    """
    typical = max(float(np.median(reached)), 1e-9) if len(reached) else 1.0
    return float(np.clip(typical**-1.5, 1.0, WIDEST))


def centred_redraws(noise: Floats) -> Floats:
    """M draws along the last axis, minus their mean, times sqrt(M / (M + 1))."""
    number = noise.shape[-1]
    spread = noise - noise.mean(axis=-1, keepdims=True)
    return np.asarray(spread * (number / (number + 1)) ** 0.5)
