"""Kernels over pairs of records, and their sums for a table of counts at ascending whole codes.

A U-statistic is the mean of a symmetric kernel g >= 0 over all pairs of records.  Kernels are in whole
numbers, and their sums take a few passes over the occupied codes, never one over pairs:

    variance           g = (x - y)^2, twice the usual kernel
    mean-difference    g = |x - y|, Gini's mean difference
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dpcore.arrays import Integers

KernelName = Literal["variance", "mean-difference"]


def largest(kernel: KernelName, codes: int) -> int:
    """B: the largest kernel of two records over this many codes; public."""
    return (codes - 1) ** 2 if kernel == "variance" else codes - 1


def of_each(kernel: KernelName, counts: Integers, codes: Integers) -> Integers:
    """For each code (k,), the sum of the kernel between a record there and all records; private.

    The sums stay below 2^63 if 2 B (see ``largest``) times the number of records does.
    """
    records, total = int(counts.sum()), int(counts @ codes)
    if kernel == "variance":
        squares = int(counts @ codes**2)
        return np.asarray(records * codes**2 - 2 * total * codes + squares)
    up_to, sums = np.cumsum(counts), np.cumsum(counts * codes)
    return np.asarray((2 * up_to - records) * codes + total - 2 * sums)


def of_pairs(kernel: KernelName, counts: Integers, codes: Integers) -> int:
    """The sum of the kernel over all pairs of records; private."""
    return int(counts @ of_each(kernel, counts, codes)) // 2
