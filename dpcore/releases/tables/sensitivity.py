r"""How far two records move tables and residuals of tables together: the joint sensitivity, exactly.

Let 1_b be the part of one record in block b: a one in its cell of a table, or that cell with the axes
centred.  For two records that agree in the columns A, the inner product of both parts is a product over
the block's columns,

    whole table      1 if all agree, else 0
    residual         1 - 1/n where they agree, -1/n where they differ; for two cells 1 and -1, as the
                     difference of both cells is what is counted

and the squared distance of both parts is 2 (k_b(all) - k_b(A)).  Their weighted sum over blocks is a
polynomial in a, a_i = 1 where the records agree in column i, whose largest value over {0, 1}^d is the
squared L2 sensitivity.  It is more than twice the squared length of one record: blocks of odd order
have negative products.  For 16 yes-or-no columns and all pairs at the best precisions it is 2.16 times
as much (``python -m benchmarks.allocation``; METHODS s).

Up to ``MOST_LISTED`` columns all patterns are listed; beyond, a bound is proved by a convex relaxation.
In L1 the same holds for whole tables and differences of two cells, with 1 - k_b(A) and 2 (1 - k_b(A)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from dpcore.accounting.digits import round_up
from dpcore.arrays import Floats
from dpcore.post.tables.consistency import subsets
from dpcore.post.tables.margins import Attributes

MOST_LISTED = 20

ROUNDED = 2.0**-48
"""Each sum of k numbers below is rounded by less than k times this, relative to the sum of their sizes:
a term is a product of few numbers, and adding it rounds by 2^-53 of what is there."""

Norm = Literal["l1", "l2"]


@dataclass(frozen=True)
class Part:
    """One block: a table over ``attributes``, whole or centred, of a relative precision ``weight``."""

    attributes: Attributes
    centred: bool = False
    weight: Fraction = Fraction(1)


class Sensitivity(NamedTuple):
    """Sums over parts of weight times the L1 norm, or the squared L2 norm; rounded up.

    ``moved``: of a record that is replaced; ``present``: of one that is added or removed; ``away``
    (parts,): how far the replacement that moves most moves each part, as a multiple of twice what it has
    in ``present``; for guidance only.
    """

    moved: Fraction
    present: Fraction
    away: Floats


def joint_sensitivity(sizes: Sequence[int], parts: Sequence[Part], norm: Norm) -> Sensitivity:
    """How far one record moves all parts together."""
    if all(not part.centred for part in parts):
        every = sum((part.weight for part in parts), Fraction(0))
        return Sensitivity(2 * every, every, np.ones(len(parts)))
    away, several = np.ones(len(parts)), []
    scale = 2.0 if norm == "l2" else 1.0
    polynomial: dict[Attributes, float] = {}
    local = present = size = 0.0
    kept = [a for a in range(len(sizes)) if sizes[a] > 1]
    for i, part in enumerate(parts):
        factors = _factors(sizes, part)
        own = math.prod(alpha + beta for alpha, beta in factors.values())
        weight = float(part.weight)
        present += weight * (own if norm == "l2" else 1.0)
        times = weight * (2.0 if norm == "l1" and not part.centred else scale)
        if len(factors) > 2 and len(kept) > MOST_LISTED:
            local += times * (own - _least(factors.values()))
            away[i] = times * (own - _least(factors.values())) / (2 * weight * own)
            continue
        several.append((i, factors, own, times / (2 * weight * (own if norm == "l2" else 1.0))))
        polynomial[()] = polynomial.get((), 0.0) + times * own
        size += times * abs(own)
        coefficients = _expanded(tuple(factors.values()))
        for inside, coefficient in zip(subsets(tuple(factors)), coefficients, strict=True):
            polynomial[inside] = polynomial.get(inside, 0.0) - times * coefficient
            size += times * abs(coefficient)
    rounded = ROUNDED * (len(parts) + len(polynomial))
    if len(kept) <= MOST_LISTED:
        largest, agree = _largest_listed(polynomial, kept)
        for i, factors, own, share in several:
            found = math.prod(alpha + beta * (a in agree) for a, (alpha, beta) in factors.items())
            away[i] = share * (own - found)
    else:
        largest = _bound(polynomial, kept)
    moved = largest + local + rounded * (size + local)
    return Sensitivity(round_up(Fraction(moved)), round_up(Fraction(present * (1 + rounded))), away)


def _factors(sizes: Sequence[int], part: Part) -> dict[int, tuple[float, float]]:
    """For each column of a part (alpha, beta): the factor is alpha + beta a."""
    found = {}
    for a in part.attributes:
        if sizes[a] == 1:
            continue
        if not part.centred:
            found[a] = (0.0, 1.0)
        elif sizes[a] == 2:
            found[a] = (-1.0, 2.0)
        else:
            found[a] = (-1.0 / sizes[a], 1.0)
    return found


@lru_cache(maxsize=4096)
def _expanded(factors: tuple[tuple[float, float], ...]) -> list[float]:
    """The coefficients of the product of alpha + beta a, in the order of subsets."""
    return [
        math.prod(beta if i in inside else alpha for i, (alpha, beta) in enumerate(factors))
        for inside in subsets(tuple(range(len(factors))))
    ]


def _least(factors: Iterable[tuple[float, float]]) -> float:
    """The least product of alpha + beta a over all patterns."""
    low = high = 1.0
    for alpha, beta in factors:
        products = [end * value for end in (low, high) for value in (alpha, alpha + beta)]
        low, high = min(products), max(products)
    return low


def _largest_listed(
    polynomial: dict[Attributes, float], kept: Sequence[int]
) -> tuple[float, set[int]]:
    """The largest value over all patterns, and one that has it: sums over the subsets of each."""
    place = {a: i for i, a in enumerate(kept)}
    values = np.zeros(2 ** len(kept))
    for inside, coefficient in polynomial.items():
        values[sum(1 << place[a] for a in inside)] += coefficient
    for i in range(len(kept)):
        table = values.reshape(-1, 2, 1 << i)
        table[:, 1] += table[:, 0]
    best = int(values.argmax())
    return float(values[best]), {a for a in kept if best >> place[a] & 1}


def _bound(polynomial: dict[Attributes, float], kept: Sequence[int]) -> float:
    """A bound on a quadratic polynomial over {0, 1}^d.

    As a_i^2 = a_i there, any d_i (a_i - a_i^2)/2 may be added.  With d large enough the polynomial is
    concave, and lies below its tangent at any point of the cube; a good point is near its largest value.
    """
    from scipy.optimize import minimize  # slow to import

    place = {a: i for i, a in enumerate(kept)}
    linear, quadratic = np.zeros(len(kept)), np.zeros((len(kept), len(kept)))
    for inside, coefficient in polynomial.items():
        at = [place[a] for a in inside]
        if len(at) == 1:
            linear[at[0]] = coefficient
        elif at:
            quadratic[at[0], at[1]] = quadratic[at[1], at[0]] = coefficient
    diagonal = _concave(quadratic)
    linear, matrix = linear + diagonal / 2, quadratic - np.diag(diagonal)

    def value(a: Floats) -> tuple[float, Floats]:
        return -float(linear @ a + a @ matrix @ a / 2), -(linear + matrix @ a)

    cube = [(0.0, 1.0)] * len(kept)
    at = minimize(value, np.full(len(kept), 0.5), jac=True, bounds=cube, method="L-BFGS-B").x
    lowest, gradient = value(at)
    tangent = lowest + float(np.sum(np.where(gradient > 0, -gradient * at, gradient * (1 - at))))
    return polynomial.get((), 0.0) - tangent


def _concave(quadratic: Floats) -> Floats:
    """(d,) what to take from the diagonal so that the matrix has no positive eigenvalue."""
    sums = np.abs(quadratic).sum(axis=1)
    scale = np.maximum(sums, 1e-12 * max(float(sums.max()), 1e-300))
    scale = scale / math.sqrt(float(scale.sum()))
    largest = float(np.linalg.eigvalsh(quadratic / np.outer(scale, scale)).max())
    return np.asarray(scale**2 * max(largest, 0.0) * (1 + 1e-9) + 1e-12 * scale.max() ** 2)
