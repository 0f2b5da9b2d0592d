"""Newton's method for kernel machines, stopped by a certificate.

F(w) = sum_i p_i loss(<w, Phi_i>, y_i) + lambda ||w||^2 is 2 lambda-strongly convex, so wherever its
gradient is g,

    ||w - w*|| <= ||g|| / (2 lambda).

No dual is needed: the length of the gradient, plus a bound on its rounding error, is the certificate.
It is reported as the gap G = ||g||^2 / (2 lambda), so that ||w - w*|| <= sqrt(G / (2 lambda)).

Each step solves one D x D system, or a smaller one if fewer than D rows have curvature, and then finds,
by bisection, where along the direction the slope of F changes sign.  So F falls with every step, even
where the curvature of the loss jumps.

**What is assumed.** The Phi_i are the floats that are passed, and the row of one record does not depend
on other records (``features.transform`` ensures it).  All later steps may round in any way, in any
order of summation and with any number of threads (Higham 2002, section 3.1): the certificate includes
all these errors, also those of p_i = c_i / n.

>>> from dpcore.machines.losses import Hinge
>>> features, labels = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([1.0, -1.0])
>>> solution = train(Hinge(), features, labels, np.array([3, 2]), 5, 0.25)
>>> [round(value, 3) for value in solution.weights.tolist()]
[0.72, -0.64]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.machines.losses import Loss
from dpcore.machines.sensitivity import default_gap

LEAST_REGULARISATION = 1e-6
"""From this value on all problems tried took at most a hundred steps; far below it some had no end."""

_UNIT_ROUNDOFF = 2.0**-53
_HALVINGS = 30
_SUMMED_ROWS, _CURVED_ROWS = 1024, 4096


@dataclass(frozen=True)
class Problem:
    """One training problem: private.

    ``features``: (N, D) rows Phi_i; ``targets``: (N,) y_i; ``shares``: (N,) p_i = c_i / n >= 0;
    ``strength``: 2 lambda.
    """

    features: Floats
    targets: Floats
    shares: Floats
    strength: float

    @cached_property
    def radius(self) -> float:
        """max_i ||Phi_i||, rounded up."""
        squares = np.einsum("nd,nd->n", self.features, self.features)
        up = 1.0 + (self.features.shape[1] + 8) * _UNIT_ROUNDOFF
        return float(math.sqrt(squares.max()) * up)

    def uncurved(self, diagonal: Floats, gradient: Floats) -> Floats:
        """Return (D,) the inverse of C = 2 lambda I + Phi' diag(diagonal) Phi times the gradient.

        With R = diag(diagonal)^(1/2) Phi it is (g - R' (2 lambda I + R R')^-1 R g) / (2 lambda)
        (Woodbury), which is faster if few rows have curvature.
        """
        # Slow to import; explaining a plan does without.
        from scipy.linalg import cho_factor, cho_solve

        size, curved = self.features.shape[1], np.flatnonzero(diagonal)
        if 2 * len(curved) < size:
            scaled = np.sqrt(diagonal[curved])[:, None] * self.features[curved]
            inner = self.strength * np.eye(len(curved)) + scaled @ scaled.T
            along = cho_solve(cho_factor(inner), scaled @ gradient)
            return np.asarray((gradient - scaled.T @ along) / self.strength)
        matrix = self.strength * np.eye(size)
        for start in range(0, len(curved), _CURVED_ROWS):  # in blocks, to bound the memory
            rows = curved[start : start + _CURVED_ROWS]
            scaled = np.sqrt(diagonal[rows])[:, None] * self.features[rows]
            matrix += scaled.T @ scaled
        return np.asarray(cho_solve(cho_factor(matrix), gradient))


@dataclass(frozen=True, eq=False)
class Solution:
    """A trained machine: private until noise is added.

    ``weights``: (D,) w with ||w - w*|| <= sqrt(gap / (2 lambda)); ``gap``: the certified gap, at
    most the tolerance, and private like the weights; ``iterations``: Newton steps taken, private
    too.
    """

    weights: Floats
    gap: float
    iterations: int

    def __repr__(self) -> str:
        return "<trained machine: withheld>"


def train(
    loss: Loss,
    features: Floats,
    targets: Floats,
    counts: NDArray[Any],
    rows: int,
    regularisation: float,
) -> Solution:
    """The minimiser w*, to within the public tolerance ``default_gap``.

    ``features``: (N, D) Phi of the distinct rows, of norm at most kappa (about 1); ``targets``:
    (N,) labels of +-1, or numbers in [-1, 1]; ``counts``: (N,) c_i; ``rows``: n,
    public.  N = 0 gives w = 0.

    Postcondition, for every data set: the certified gap is at most the tolerance, so
    ||w - w*|| <= sqrt(gap / (2 lambda)).  Messages never contain data.
    """
    if not regularisation >= LEAST_REGULARISATION:
        raise ValueError(
            f"regularisation must be at least {LEAST_REGULARISATION}, not {regularisation}"
        )
    size = np.abs(targets)
    if not np.all(size == 1.0 if loss.classifies else size <= 1.0):
        raise ValueError("labels must be +1 or -1, targets between -1 and 1")
    # Each count may be rounded.
    if not np.all(counts >= 0.0) or float(np.sum(counts)) > rows * (1.0 + 2.0**-30):
        raise ValueError("counts must not be negative, and sum to at most rows")
    if not np.all(np.isfinite(features)):
        raise ValueError("features must be finite")
    problem = Problem(features, targets, counts / rows, 2 * regularisation)
    return solve(loss, problem, default_gap(rows, regularisation, loss.slope))


def solve(loss: Loss, problem: Problem, tolerance: float) -> Solution:
    """The minimiser to within a certified gap of ``tolerance``."""
    weights, steps = np.zeros(problem.features.shape[1]), 0
    if not len(problem.shares):
        return Solution(weights, 0.0, 0)
    while True:
        responses = problem.features @ weights
        gradient, proved = _gradient(loss, problem, responses, weights)
        if proved <= tolerance:
            return Solution(weights, proved, steps)
        curvatures = problem.shares * loss.curvatures(responses, problem.targets)
        move = -problem.uncurved(curvatures, gradient)
        weights = weights + _step(loss, problem, responses, weights, move) * move
        steps += 1


def _gradient(
    loss: Loss, problem: Problem, responses: Floats, weights: Floats
) -> tuple[Floats, float]:
    """The gradient of F, and the certified gap G, which includes all rounding errors."""
    pull, strength = problem.shares * loss.slopes(responses, problem.targets), problem.strength
    total, blocks = np.zeros(len(weights)), 0
    # In blocks, so that a term is rounded few times.
    for start in range(0, len(pull), _SUMMED_ROWS):
        rows = slice(start, start + _SUMMED_ROWS)
        total, blocks = total + pull[rows] @ problem.features[rows], blocks + 1
    gradient = total + strength * weights
    size = math.sqrt(float(weights @ weights)) * 1.01
    response = (len(weights) + 6) * size * problem.radius + 2.0
    slope = loss.curving * response + 8.0 * loss.slope
    lost = problem.radius * float(np.sum(problem.shares)) * slope
    roundings = _SUMMED_ROWS + blocks + 8
    lost += problem.radius * float(np.sum(np.abs(pull))) * roundings + 4.0 * strength * size
    length = math.sqrt(float(gradient @ gradient)) * (1.0 + (len(weights) + 8) * _UNIT_ROUNDOFF)
    bound = length + 1.02 * _UNIT_ROUNDOFF * lost
    return gradient, bound * bound / strength * (1.0 + 8.0 * _UNIT_ROUNDOFF)


def _step(loss: Loss, problem: Problem, responses: Floats, weights: Floats, move: Floats) -> float:
    """The length of the step along the direction: 1, or shorter if F rises again before that."""
    along = problem.features @ move

    def rises(step: float) -> bool:
        ridge = problem.strength * float((weights + step * move) @ move)
        slopes = loss.slopes(responses + step * along, problem.targets)
        return ridge + float((problem.shares * slopes) @ along) > 0.0

    if not rises(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rises(middle) else (middle, high)
    # With a step of zero the solver would repeat itself for ever.
    return low or high
