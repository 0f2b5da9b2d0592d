"""The best mechanism for a count, as a linear program over tables (Hall 2012, section 2.2).

Rows j and columns i run over {0, ..., n}; q[j, i] is the probability of answer i if the count is j.

    rows add up to 1,   q[j, i] <= e^alpha q[j', i] + s[j, j', i]   for |j - j'| = 1,
    s >= 0 adds up to at most beta over i for each ordered pair (no s where beta = 0)

    minimise  max_j risk_j,      risk_j = sum_i loss[j, i] q[j, i]

The solution is in floating point, to about 1e-9.  It is the benchmark for other mechanisms, but not
private before ``papers.minimax_count.table`` has corrected it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dpcore.arrays import Floats
from dpcore.releases.counts.best_answer import CountLoss

if TYPE_CHECKING:
    from scipy import sparse

LARGEST_ALPHA = 30.0
"""For a larger alpha the table of this alpha is used: it differs from exact counts by less than 1e-12,
and e^alpha is not too large for the solver."""

_TOLERANCES = (1e-10, 1e-9)
"""Feasibility tolerances of the solver; the second is used if it finds no solution with the first."""


def geometric_table(n: int, alpha: float) -> Floats:
    """(n+1, n+1) probabilities of noisy count z given count j; z is clamped to {0, ..., n}.

    Clamping loses no information: all z <= 0 have the same posterior, and so have all z >= n.
    """
    j, z = np.arange(n + 1)[:, None], np.arange(n + 1)[None, :]
    a = np.exp(-alpha)
    table = (1 - a) / (1 + a) * a ** np.abs(j - z)
    table[:, 0] = a ** j[:, 0] / (1 + a)
    table[:, n] = a ** (n - j[:, 0]) / (1 + a)
    if n == 0:
        table[:] = 1.0
    return np.asarray(table)


def losses(n: int, loss: CountLoss) -> Floats:
    """The loss of answer i if the count is j, (n+1, n+1)."""
    apart = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1))).astype(np.float64)
    by_name: Mapping[str, Floats] = {
        "absolute": apart,
        "squared": apart**2,
        "zero-one": (apart > 0).astype(np.float64),
    }
    return by_name[loss]


def optimal_table(
    n: int, alpha: float, beta: float = 0.0, loss: CountLoss = "absolute"
) -> tuple[Floats, float]:
    """The table (n+1, n+1) with the least worst-case risk, and this risk."""
    from scipy import sparse  # slow to import; explaining a plan does without

    alpha = min(alpha, LARGEST_ALPHA)
    size = (n + 1) ** 2
    pairs = [(j, k) for j in range(n + 1) for k in (j - 1, j + 1) if 0 <= k <= n]
    identity = sparse.identity(n + 1, format="csr")
    choose = sparse.csr_matrix(
        (
            np.tile([1.0, -math.exp(alpha)], len(pairs)),
            (np.repeat(np.arange(len(pairs)), 2), np.ravel(pairs)),
        ),
        shape=(len(pairs), n + 1),
    )
    private = sparse.kron(choose, identity)
    slacks = len(pairs) * (n + 1) if beta else 0
    upper = [sparse.hstack([private, -sparse.identity(slacks)]) if slacks else private]
    bounds = [np.zeros(private.shape[0])]
    if slacks:
        per_pair = sparse.kron(sparse.identity(len(pairs)), np.ones((1, n + 1)))
        upper.append(sparse.hstack([sparse.csr_matrix((len(pairs), size)), per_pair]))
        bounds.append(np.full(len(pairs), beta))
    rows = sparse.kron(identity, np.ones((1, n + 1)))
    table, value = _solve(losses(n, loss), rows, upper, bounds, slacks)
    return table.reshape(n + 1, n + 1), value


def optimal_remap(n: int, alpha: float, loss: CountLoss = "absolute") -> tuple[Floats, float]:
    """The best answers to a noisy count: (n+1, n+1) probabilities of answer i given noisy count z.

    With geometric noise they reach the pure optimum of ``optimal_table``: see Ghosh, Roughgarden &
    Sundararajan (2012) for a prior and Gupte & Sundararajan (2010) for the minimax.  The program has
    no privacy constraint, because the noise makes any answers private.
    """
    from scipy import sparse

    noise = geometric_table(n, alpha)
    cost = losses(n, loss)
    rows = sparse.kron(sparse.identity(n + 1), np.ones((1, n + 1)))
    weights = (noise[:, :, None] * cost[:, None, :]).reshape(n + 1, -1)
    remap, value = _solve(weights, rows, [], [], 0)
    return remap.reshape(n + 1, n + 1), value


def _solve(
    risks: Floats,
    rows: sparse.spmatrix,
    upper: list[sparse.spmatrix],
    bounds: list[Floats],
    slacks: int,
) -> tuple[Floats, float]:
    """Minimise the largest risk over rows that add up to 1.

    ``risks``: (n+1, (n+1)^2) the risk of every count, linear in all unknowns; or (n+1, n+1) where
    the risk of each count depends on its own row of unknowns only.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    size, counts = rows.shape[1], rows.shape[0]
    if risks.shape[1] == counts and size > counts:
        risks = sparse.block_diag(list(risks[:, None, :]), format="csr")
    risks = sparse.csr_matrix(risks)
    pad = sparse.csr_matrix((counts, slacks))
    # The last unknown is the largest risk.
    one = np.ones((counts, 1))
    upper = [sparse.hstack([part, sparse.csr_matrix((part.shape[0], 1))]) for part in upper]
    upper.append(sparse.hstack([risks, pad, -one]))
    equal = sparse.csr_matrix(sparse.hstack([rows, pad, 0 * one]))
    for tolerance in _TOLERANCES:
        solved = linprog(
            np.r_[np.zeros(size + slacks), 1.0],
            A_ub=sparse.vstack(upper, format="csr"),
            b_ub=np.concatenate([*bounds, np.zeros(counts)]),
            A_eq=equal,
            b_eq=np.ones(counts),
            method="highs",
            options={
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
            },
        )
        if solved.success:
            break
    if not solved.success:
        raise ValueError(f"the linear program was not solved: {solved.message}")
    return np.asarray(solved.x[:size]), float(solved.fun)
