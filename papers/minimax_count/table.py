"""A table of probabilities in integers, whose privacy is proved in exact arithmetic.

A solver's floats violate their constraints by about 1e-9, which may be any factor of a probability near
zero.  So a table is first mixed with a little of the uniform table, which makes small probabilities
large enough to round; then it is rounded to whole parts of TOTAL; and then all its inequalities are
checked in integers, against a certified lower bound of e^alpha.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpcore.arrays import Integers
from dpcore.releases.counts.best_answer import CountLoss
from dpcore.sampling.enclosures import exp_bounds
from papers.minimax_count.programs import (
    geometric_table,
    losses,
    optimal_remap,
    optimal_table,
)

TOTAL = 1 << 60
"""Every row of a table adds up to this."""

LARGEST_COUNT = 100
"""The most records for which a table is computed."""

_BITS = 128
_PURE, _APPROXIMATE = 1e-7, 1e-4
"""The weight of the uniform table in the mixture, without and with beta."""


@lru_cache(maxsize=32)
def minimax_table(n: int, alpha: Fraction, beta: Fraction, loss: CountLoss) -> Integers:
    """(n+1, n+1) parts of TOTAL: (alpha, beta)-DP, with the least worst-case risk up to about 1e-4.

    Raises ``ValueError`` if n is too large or the privacy of the result cannot be proved.
    """
    if not 1 <= n <= LARGEST_COUNT:
        raise ValueError(
            f"mechanism: tables are for 1 to {LARGEST_COUNT} rows, not {n}; use discrete-laplace"
        )
    if beta:
        chances, _ = optimal_table(n, float(alpha), float(beta), loss)
        mixed = _APPROXIMATE
    else:
        stricter = float(alpha) * (1 - 1e-6) - 1e-7
        if stricter <= 0:
            raise ValueError("mechanism: alpha is too small for a table; use discrete-laplace")
        remap, _ = optimal_remap(n, stricter, loss)
        chances, mixed = geometric_table(n, stricter) @ np.maximum(remap, 0), _PURE
    chances = np.maximum(chances, 0)
    chances = (1 - mixed) * chances / chances.sum(axis=1, keepdims=True) + mixed / (n + 1)
    table: Integers = np.floor(chances * TOTAL).astype(np.int64)
    # The rounding remainder goes to the likeliest answer, where its relative change is smallest.
    table[np.arange(n + 1), table.argmax(axis=1)] += TOTAL - table.sum(axis=1)
    if not is_private(table, alpha, beta):
        raise ValueError(
            "mechanism: no table could be proved private for this alpha and beta;"
            " use discrete-laplace"
        )
    table.flags.writeable = False
    return table


def digest(table: Integers) -> str:
    """SHA-256 of a table, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(table, dtype="<i8").tobytes()).hexdigest()


def is_private(table: Integers, alpha: Fraction, beta: Fraction) -> bool:
    """Whether neighbouring rows of whole numbers are certainly (alpha, beta)-indistinguishable."""
    if (table < 0).any() or any(sum(row) != TOTAL for row in table.tolist()):
        return False
    _, inverse = exp_bounds(alpha, _BITS)  # e^alpha >= 2^bits / inverse
    parts = table.astype(object)
    for near, far in ((parts[:-1], parts[1:]), (parts[1:], parts[:-1])):
        excess = near * inverse - far * (1 << _BITS)
        worst = np.maximum(excess, 0).sum(axis=1).max()
        if worst * beta.denominator > beta.numerator * TOTAL * inverse:
            return False
    return True


def worst_risk(table: Integers, loss: CountLoss) -> float:
    """The largest expected loss over all counts."""
    chances = table / TOTAL
    return float((chances * losses(len(table) - 1, loss)).sum(axis=1).max())
