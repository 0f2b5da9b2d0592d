"""A proved bound on how far a weight vector is from the optimum, with every rounding counted.

For *any* w and any multipliers a in [0, 1]^N, with w(a) = (1 / (2 lambda)) sum_i p_i a_i y_i Phi_i,
primal minus dual objective (``svm``) is a sum of terms that are all non-negative:

    F(w) - D(a) = S + lambda ||w - w(a)||^2,
    S = sum_i p_i [(1 - a_i) max(m_i, 0) + a_i max(-m_i, 0)],       m_i = b_i - y_i <w, Phi_i>.

Both objectives have curvature 2 lambda in w: F(w) - F(w*) >= lambda ||w - w*||^2 and
D(a*) - D(a) >= lambda ||w(a) - w*||^2.  Add them, write x = ||w - w*|| and e = ||w - w(a)||:

    x^2 + max(0, x - e)^2 <= S / lambda + e^2,    so    x <= e/2 + sqrt(e^2/4 + S / (2 lambda)).

``certified_gap`` returns 2 lambda x^2 for this bound x; at w = w(a) that is S, the duality gap
itself.

Nothing cancels in S, so it keeps its relative accuracy down to zero if the margins m_i do.  A
margin from a matrix product is off by up to about D 1e-16 ||w||, so the rows for which that matters
(those on the margin, as a rule at most D) get theirs again exactly: products split by Dekker's
(1971) error-free transformation and summed with one rounding by ``math.fsum``.

The bounds hold for any order of summation in the matrix products (Higham 2002, section 3.1) and
count every rounding, including that of p_i = c_i / n; underflow, below 1e-300, is ignored.
"""

from __future__ import annotations

import math

import numpy as np

from dpcore.arrays import Floats
from dpcore.machines.interior_point import Problem

_UNIT_ROUNDOFF = 2.0**-53
_BLOCK_ROWS = 1024
_SPLITTER = 2.0**27 + 1.0


def certified_gap(problem: Problem, multipliers: Floats, weights: Floats, good: float) -> float:
    """A proved upper bound g: ||w - w*|| <= sqrt(g / (2 lambda)).

    ``multipliers``: (N,) in [0, 1]; ``weights``: (D,).  Exact margins are computed only where they
    can bring the bound to ``good`` or below.
    """
    radius = problem.radius
    distance = _distance_bound(problem, multipliers, weights)
    margins = problem.margins(weights)
    coarse = (len(weights) + 4) * math.sqrt(float(weights @ weights)) * radius + 2.0
    error = np.full(len(margins), 1.01 * _UNIT_ROUNDOFF * coarse)

    optimistic = _excesses(problem, multipliers, margins, np.zeros_like(error))
    excesses = _excesses(problem, multipliers, margins, error)
    gap = _gap(problem, excesses, distance)
    # The exact margins may be smaller than the computed ones, but not by much more than ``error``.
    if gap <= good or _gap(problem, optimistic, distance) > 10.0 * good:
        return gap

    doubt = excesses - optimistic
    order = np.argsort(doubt)
    targets = np.broadcast_to(problem.targets, len(margins))
    doubtful = order[np.cumsum(doubt[order]) > good / 8.0]
    for start in range(0, len(doubtful), _BLOCK_ROWS):
        rows = doubtful[start : start + _BLOCK_ROWS]
        margins[rows] = exact_margins(
            problem.features[rows], problem.labels[rows], weights, targets[rows]
        )
        error[rows] = 2.0 * _UNIT_ROUNDOFF * np.abs(margins[rows])
    return _gap(problem, _excesses(problem, multipliers, margins, error), distance)


def exact_margins(
    features: Floats, labels: Floats, weights: Floats, targets: Floats | float = 1.0
) -> Floats:
    """b_i - y_i <w, Phi_i>, rounded once.

    ``features``: (k, D); ``labels``: (k,); ``weights``: (D,); ``targets``: (k,) or one for all.
    """
    products = features * weights
    left, right = _high(features), _high(weights)
    left_rest, right_rest = features - left, weights - right
    errors = ((left * right - products) + left * right_rest + left_rest * right) + (
        left_rest * right_rest
    )
    terms = -labels[:, None] * np.concatenate([products, errors], axis=1)
    goals = np.broadcast_to(targets, len(terms)).tolist()
    return np.array(
        [math.fsum([goal, *row]) for goal, row in zip(goals, terms.tolist(), strict=True)]
    )


def _high(values: Floats) -> Floats:
    """The leading 26 bits of each value, so that products of two such parts are exact (Dekker)."""
    scaled = _SPLITTER * values
    return np.asarray(scaled - (scaled - values))


def _excesses(problem: Problem, multipliers: Floats, margins: Floats, error: Floats) -> Floats:
    """The terms of S, (N,), each at its largest for margins within ``error`` of those given."""
    active = (1.0 - multipliers) * np.maximum(margins + error, 0.0)
    inactive = multipliers * np.maximum(error - margins, 0.0)
    return problem.shares * (active + inactive)


def _gap(problem: Problem, excesses: Floats, distance: float) -> float:
    """2 lambda x^2 for the bound x in the module's docstring, rounded up."""
    up = 1.0 + (len(excesses) + 32) * _UNIT_ROUNDOFF
    excess = float(np.sum(excesses)) * up / (2.0 * problem.regularisation)
    bound = distance / 2.0 + math.sqrt(distance**2 / 4.0 + excess)
    return 2.0 * problem.regularisation * bound * bound * up


def _distance_bound(problem: Problem, multipliers: Floats, weights: Floats) -> float:
    """e = ||w - w(a)||, rounded up."""
    pull = problem.shares * multipliers
    total, roundings = blocked_sum(problem.features, problem.labels * pull)
    gradient = 2.0 * problem.regularisation * weights - total
    largest_sum = problem.radius * float(np.sum(pull))
    lost = largest_sum * (roundings + 8) + float(np.sum(np.abs(gradient))) * 4.0
    size = math.sqrt(float(gradient @ gradient)) * (1.0 + (len(weights) + 8) * _UNIT_ROUNDOFF)
    size += (
        2.0 * problem.regularisation * math.sqrt(float(weights @ weights)) * 4.0 * _UNIT_ROUNDOFF
    )
    return (size + 1.01 * _UNIT_ROUNDOFF * lost) / (2.0 * problem.regularisation)


def blocked_sum(features: Floats, coefficients: Floats) -> tuple[Floats, int]:
    """sum_i coefficients_i Phi_i: (D,), and the most roundings that any of its terms undergoes.

    Summing in blocks keeps them few for any number of rows.
    """
    total, blocks = np.zeros(features.shape[1]), 0
    for start in range(0, len(coefficients), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        total += coefficients[rows] @ features[rows]
        blocks += 1
    return total, _BLOCK_ROWS + blocks
