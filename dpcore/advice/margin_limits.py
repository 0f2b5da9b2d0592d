r"""The least total squared error of margins, among mechanisms that add noise to linear queries.

Let W be the workload, all cells of the tables over the sets S, as a matrix on the N cells of the domain.
A matrix mechanism adds Gaussian noise to the queries A x and estimates W x from them.  With s^2 the
variance at L2 sensitivity 1 and X = A'A, its total squared error is s^2 Delta^2 tr(W'W X^-1), where
Delta^2 is at least the mean of the squared changes that a record can make (Li & Miklau 2013):

    add-remove     mean of |A e_i|^2           = tr(X)/N
    replace-one    mean of |A (e_i - e_j)|^2   = 2 tr(P X)/(N - 1), P centring, and the total is public

Subject to tr(X) <= c the least tr(W'W X^-1) is (sum of singular values of W)^2/c.  So no choice of A has
less than s^2 (sum of singular values)^2/N, or s^2 2 (the same of W P)^2/(N - 1).  For Laplace noise the
bound holds as well, but is loose: the L1 sensitivity is at least the L2 sensitivity.

W'W is diagonal in the components of ``dpcore.post.tables.consistency``: for each set T there are
d_T = product over T of (n_j - 1) equal singular values sqrt(N mu_T), mu_T = sum over S containing T of
1/n_S, where n_S is the number of cells of S.  (Under add-remove the optimum is attained, by residuals:
Xiao et al. 2023.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcore.domain.adjacency import Adjacency
from dpcore.post.tables.consistency import subsets

MOST_SUBSETS = 2**16


def least_total(
    sizes: Sequence[int], sets: Sequence[tuple[int, ...]], unit: float, adjacency: Adjacency
) -> float | None:
    """A lower bound of the total variance of all cells of all tables.

    ``unit``: the variance of the noise at L2 sensitivity 1.  None if there are too many subsets.
    """
    if sum(2 ** len(attrs) for attrs in sets) > MOST_SUBSETS:
        return None
    shared: dict[tuple[int, ...], float] = {}
    for attrs in sets:
        cells = math.prod(sizes[a] for a in attrs)
        for subset in subsets(attrs):
            shared[subset] = shared.get(subset, 0.0) + 1 / cells
    total = math.sqrt(shared.pop(()))
    rest = sum(
        math.prod(sizes[a] - 1 for a in subset) * math.sqrt(mu) for subset, mu in shared.items()
    )
    one = 1 / math.prod(sizes)
    if adjacency.public_rows:
        return 0.0 if one == 1 else 2 * unit * rest**2 / (1 - one)
    part = rest / (rest + total)  # the fraction of tr(X) for all queries but the total
    if adjacency.relation == "replace-one":
        part = min(part, (1 - one) / 2)
    least = (rest**2 / part if part else 0.0) + total**2 / (1 - part)
    return unit * adjacency.most**2 * least
