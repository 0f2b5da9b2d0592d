"""Newton's method for machines with a smooth loss, stopped by a certificate.

F(w) = sum_i p_i loss(<w, Phi_i>, y_i) + lambda ||w||^2 is 2 lambda-strongly convex, so wherever its
gradient is g,

    ||w - w*|| <= ||g|| / (2 lambda).

No dual is needed: the length of the gradient, plus a bound on its rounding error, is the certificate.
It is reported as the gap G = ||g||^2 / (2 lambda), so that ||w - w*|| <= sqrt(G / (2 lambda)).

Each step solves one D x D system and then finds, by bisection, where along the direction the slope of
F changes sign.  So F falls with every step, even where the curvature of the loss jumps.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpcore.arrays import Floats
from dpcore.machines.certificate import blocked_sum
from dpcore.machines.interior_point import Problem
from dpcore.machines.svm import Solution

LEAST_REGULARISATION = 1e-6
"""At or above this every problem tried was solved within a hundred steps; far below, some never were."""

_UNIT_ROUNDOFF = 2.0**-53
_HALVINGS = 30


class Smooth(Protocol):
    """A convex loss whose slope is Lipschitz."""

    @property
    def slope(self) -> float:
        """The largest slope."""
        ...

    @property
    def curving(self) -> float:
        """The largest second derivative."""
        ...

    def slopes(self, responses: Floats, targets: Floats) -> Floats:
        """First derivatives in the responses."""
        ...

    def curvatures(self, responses: Floats, targets: Floats) -> Floats:
        """Second derivatives, or a subgradient of the first where there is none."""
        ...


def solve(loss: Smooth, labelled: Problem, tolerance: float) -> Solution:
    """The minimiser to within a certified gap of ``tolerance``; the labels are the loss's targets.

    Raises ``ValueError``, on public grounds, for a lambda below ``LEAST_REGULARISATION``.
    """
    if labelled.regularisation < LEAST_REGULARISATION:
        raise ValueError(
            f"regularisation must be at least {LEAST_REGULARISATION}, not {labelled.regularisation}"
        )
    targets, shares = labelled.labels, labelled.shares
    strength = labelled.regularisation
    problem = Problem(labelled.features, np.ones_like(shares), shares, strength)
    weights, steps = np.zeros(problem.features.shape[1]), 0
    if not len(shares):
        return Solution(weights, 0.0, 0)
    while True:
        responses = problem.responses(weights)
        gradient, proved = _gradient(loss, problem, targets, responses, weights)
        if proved <= tolerance:
            return Solution(weights, proved, steps)
        curvature = problem.curvature(shares * loss.curvatures(responses, targets))
        move = -cho_solve(cho_factor(curvature), gradient)
        weights = weights + _step(loss, problem, targets, responses, weights, move) * move
        steps += 1


def _gradient(
    loss: Smooth, problem: Problem, targets: Floats, responses: Floats, weights: Floats
) -> tuple[Floats, float]:
    """The gradient of F, and the certified gap G, in which every rounding is counted."""
    pull = problem.shares * loss.slopes(responses, targets)
    total, roundings = blocked_sum(problem.features, pull)
    strength, radius = 2.0 * problem.regularisation, problem.radius
    gradient = total + strength * weights
    size = math.sqrt(float(weights @ weights)) * 1.01
    response = (len(weights) + 6) * size * radius + 2.0
    slope = loss.curving * response + 8.0 * loss.slope
    lost = radius * float(np.sum(problem.shares)) * slope
    lost += radius * float(np.sum(np.abs(pull))) * (roundings + 8) + 4.0 * strength * size
    length = math.sqrt(float(gradient @ gradient)) * (1.0 + (len(weights) + 8) * _UNIT_ROUNDOFF)
    bound = length + 1.02 * _UNIT_ROUNDOFF * lost
    return gradient, bound * bound / strength * (1.0 + 8.0 * _UNIT_ROUNDOFF)


def _step(
    loss: Smooth,
    problem: Problem,
    targets: Floats,
    responses: Floats,
    weights: Floats,
    move: Floats,
) -> float:
    """The length of the step: 1, or as far as F falls along the direction."""
    along, strength = problem.responses(move), 2.0 * problem.regularisation

    def rises(step: float) -> bool:
        ridge = strength * float((weights + step * move) @ move)
        slopes = loss.slopes(responses + step * along, targets)
        return ridge + float((problem.shares * slopes) @ along) > 0.0

    if not rises(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rises(middle) else (middle, high)
    return low or high
