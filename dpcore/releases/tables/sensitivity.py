r"""The exact joint sensitivity of tables and residuals of tables.

Let 1_b be the contribution of one record to block b: a one in its cell of a table, or that table with
its axes centred.  For two records that agree in the columns A, the inner product k_b(A) of their
contributions is a product over the block's columns,

    whole table      1 if all agree, else 0
    residual         1 - 1/n where they agree, -1/n where they differ; for two cells 1 and -1, because
                     the difference of both cells is counted

and their squared distance is 2 (k_b(all) - k_b(A)).  Their weighted sum over blocks is a polynomial in
a, a_i = 1 where the records agree in column i, whose largest value over {0, 1}^d is the squared L2
sensitivity.  That is more than twice the squared length of one record, as blocks of odd order have
negative products: for 16 yes-or-no columns and all pairs at the best precisions, 2.16 times this length
(``python -m benchmarks.allocation``).

Up to ``MOST_LISTED`` columns all patterns are listed; beyond, a bound is proved by a convex relaxation.
In L1 the same is true for whole tables and differences of two cells, with 1 - k_b(A) and 2 (1 - k_b(A)).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from dpcore.accounting.digits import round_up
from dpcore.arrays import Floats
from dpcore.post.tables.margins import Attributes
from dpcore.releases.tables.incidence import Incidence, incidence

MOST_LISTED = 20

ROUNDED = 2.0**-48
"""A relative bound on rounding per term: each sum of k numbers in this module has an error of less than
k times this, relative to the sum of the sizes of the numbers."""

Norm = Literal["l1", "l2"]


class MeasuredBlock(NamedTuple):
    """One block: a table over ``attributes``, whole or centred, with a relative precision ``weight``."""

    attributes: Attributes
    centred: bool = False
    weight: Fraction = Fraction(1)


class Sensitivity(NamedTuple):
    """Sums over blocks of weight times the L1 norm, or the squared L2 norm; rounded up.

    ``moved``: if a record is replaced; ``present``: if a record is added or removed.
    """

    moved: Fraction
    present: Fraction


def joint_sensitivity(
    sizes: Sequence[int], blocks: Sequence[MeasuredBlock], norm: Norm
) -> Sensitivity:
    """The sensitivity of all blocks together to one record."""
    if all(not block.centred for block in blocks):
        several = Counter(block.weight for block in blocks)
        every = sum((weight * times for weight, times in several.items()), Fraction(0))
        return Sensitivity(2 * every, every)
    columns = np.array(sizes, dtype=np.float64)
    # The factor of a column in a centred block is alpha + beta a; in a whole one it is a.
    alpha, beta = np.where(columns == 2, [[-1.0], [2.0]], [-1 / columns, np.ones(len(columns))])
    known = incidence(tuple(sizes), tuple(block.attributes for block in blocks))
    centred = np.array([block.centred for block in blocks])
    weights = np.array([float(block.weight) for block in blocks])
    own = np.where(centred, known.product(alpha + beta)[known.whole], 1.0)
    norms = own if norm == "l2" else np.ones(len(blocks))
    times = weights * np.where(centred & (norm == "l1"), 1.0, 2.0)
    present = float(np.sum(weights * norms))
    kept = [a for a in range(len(sizes)) if sizes[a] > 1]
    listed = len(kept) <= MOST_LISTED
    # The relaxation is for quadratic polynomials: each larger block is bounded separately.
    alone = (known.orders[known.whole] > 2) & (not listed)
    apart = times * (own - np.where(centred, _least(known, alpha, beta)[known.whole], 0.0))
    local = float(apart[alone].sum())
    before = known.product(alpha)
    split = known.product(beta)[known.inside] * before[known.whole][known.tables]
    coefficients = np.where(
        centred[known.tables],
        split / before[known.inside],
        known.whole[known.tables] == known.inside,
    )
    terms = np.where(alone[known.tables], 0.0, times[known.tables] * coefficients)
    polynomial: Floats = -np.bincount(known.inside, terms, len(known.subsets)).astype(np.float64)
    constant = np.where(alone, 0.0, times * own)
    polynomial[0] += constant.sum()
    size = float(np.abs(constant).sum() + np.abs(terms).sum())
    rounded = ROUNDED * (len(blocks) + len(polynomial))
    largest = _largest_listed(known, polynomial, kept) if listed else _bound(known, polynomial)
    moved = largest + local + rounded * (size + local)
    return Sensitivity(round_up(Fraction(moved)), round_up(Fraction(present * (1 + rounded))))


def _least(known: Incidence, alpha: Floats, beta: Floats) -> Floats:
    """For each subset (subsets,), the smallest product of alpha + beta a over all patterns."""
    found = []
    for columns in known.by_order:
        low = high = np.ones(len(columns))
        for column in columns.T:
            ends = alpha[column], (alpha + beta)[column]
            products = [end * value for end in (low, high) for value in ends]
            low, high = np.minimum.reduce(products), np.maximum.reduce(products)
        found.append(low)
    return np.concatenate(found)


def _largest_listed(known: Incidence, polynomial: Floats, kept: Sequence[int]) -> float:
    """The largest value of the polynomial, by listing all patterns of agreeing columns."""
    bits = np.zeros(len(known.sizes), dtype=np.int64)
    bits[kept] = 1 << np.arange(len(kept))
    values = np.zeros(2 ** len(kept))
    values[np.concatenate([bits[columns].sum(axis=1) for columns in known.by_order])] = polynomial
    for i in range(len(kept)):
        table = values.reshape(-1, 2, 1 << i)
        table[:, 1] += table[:, 0]
    return float(values.max())


def _bound(known: Incidence, polynomial: Floats) -> float:
    """A bound on a quadratic polynomial over {0, 1}^d.

    As a_i^2 = a_i there, any d_i (a_i - a_i^2)/2 may be added.  With d large enough the polynomial is
    concave, and lies below its tangent at any point of the cube; a good point is near its largest value.
    """
    from scipy.optimize import minimize  # slow to import

    columns = len(known.sizes)
    linear, quadratic = np.zeros(columns), np.zeros((columns, columns))
    orders = known.orders
    if len(known.by_order) > 1:
        linear[known.by_order[1][:, 0]] = polynomial[orders == 1]
    if len(known.by_order) > 2:
        first, second = known.by_order[2].T
        quadratic[first, second] = quadratic[second, first] = polynomial[orders == 2]
    diagonal = _concave(quadratic)
    linear, matrix = linear + diagonal / 2, quadratic - np.diag(diagonal)

    def value(a: Floats) -> tuple[float, Floats]:
        return -float(linear @ a + a @ matrix @ a / 2), -(linear + matrix @ a)

    cube = [(0.0, 1.0)] * columns
    # A poor search only makes the bound larger.
    at = minimize(value, np.full(columns, 0.5), jac=True, bounds=cube, method="L-BFGS-B").x
    lowest, gradient = value(at)
    tangent = lowest + float(np.sum(np.where(gradient > 0, -gradient * at, gradient * (1 - at))))
    return float(polynomial[0]) - tangent


def _concave(quadratic: Floats) -> Floats:
    """The amounts (d,) to subtract from the diagonal so that the matrix has no positive eigenvalue."""
    sums = np.abs(quadratic).sum(axis=1)
    scale = np.maximum(sums, 1e-12 * max(float(sums.max()), 1e-300))
    scale = scale / math.sqrt(float(scale.sum()))
    largest = float(np.linalg.eigvalsh(quadratic / np.outer(scale, scale)).max())
    # Slightly more than needed, because eigenvalues are rounded.
    return np.asarray(scale**2 * max(largest, 0.0) * (1 + 1e-9) + 1e-12 * scale.max() ** 2)
