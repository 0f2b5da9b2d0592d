"""Which synthetic records live together."""

import numpy as np

from dpcore.arrays import Integers


def group_households(sizes: Integers, shared: Integers, generator: np.random.Generator) -> Integers:
    """Household numbers (rows,), from 1: records of one size that agree in what is shared.

    ``sizes``: (rows,) positive; ``shared``: (rows, k) codes.  Among the records of a size k that agree,
    any k live together, at random; those left over make one household of fewer.  Records of a masked
    size are in none: their number is masked.
    """
    if np.ma.is_masked(sizes):
        known = ~np.ma.getmaskarray(sizes)
        numbers = np.zeros(len(sizes), dtype=np.int64)
        numbers[known] = group_households(np.asarray(sizes)[known], shared[known], generator)
        return np.ma.masked_array(numbers, mask=~known)
    order = generator.permutation(len(sizes))
    _, kinds = np.unique(np.column_stack([sizes, shared])[order], axis=0, return_inverse=True)
    kinds = kinds.reshape(-1)
    sorted_by_kind = np.argsort(kinds, kind="stable")
    first = np.searchsorted(kinds[sorted_by_kind], kinds[sorted_by_kind])
    place = np.arange(len(kinds)) - first
    rows = order[sorted_by_kind]
    within = place // sizes[rows]
    _, numbers = np.unique(
        np.column_stack([kinds[sorted_by_kind], within]), axis=0, return_inverse=True
    )
    households = np.empty(len(sizes), dtype=np.int64)
    households[rows] = numbers.reshape(-1) + 1
    return households
