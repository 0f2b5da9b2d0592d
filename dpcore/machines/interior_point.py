"""Interior-point iterations for the linear support vector machine in its feature space.

The hinge machine without intercept, with shares p_i = c_i / n of the rows and signed features
z_i = y_i Phi_i, is the quadratic programme

    minimise over w, xi, t    lambda ||w||^2 + sum_i p_i xi_i
    subject to                xi_i - t_i = b_i - <w, z_i>,    xi_i >= 0,    t_i >= 0,

with targets b_i = 1 for the hinge; other losses that are sums of hinges have other targets.
Its optimality conditions, with multipliers a_i in (0, 1) and s_i = 1 - a_i, are

    2 lambda w = sum_i p_i a_i z_i,     p_i a_i t_i = mu,     p_i s_i xi_i = mu,     mu -> 0,

and Newton's method on them needs one D x D system per step, whatever the number N of distinct rows
(Ferris & Munson 2002; Fine & Scheinberg 2001):

    (2 lambda I + Phi' diag(p theta) Phi) dw = ...,     theta = 1 / (xi / s + t / a),

which costs N D^2 operations to build.  Steps are Mehrotra's (1992) predictor and corrector, then up
to three of Gondzio's (1996) centrality corrections, which re-use the factorisation; 5 to 40 steps
reach a gap near rounding.  The barrier gives each distinct row the same mu and not one in
proportion to its share: with shares from 1e-6 to 1 that takes 17 steps instead of over 80.

All of this is floating point and guarantees nothing; ``certificate`` checks the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats

_BLOCK_ROWS = 4096
_CENTRALITY_CORRECTIONS = 3
_REFINEMENTS = 3


@dataclass(frozen=True)
class Problem:
    """One training problem: private.

    ``features``: (N, D) rows Phi_i; ``labels``: (N,) of +-1; ``shares``: (N,) p_i = c_i / n > 0;
    ``targets``: (N,) of at most 1 in size, or one for all: what y_i <w, Phi_i> should reach.
    """

    features: Floats
    labels: Floats
    shares: Floats
    regularisation: float
    targets: Floats | float = 1.0

    @cached_property
    def radius(self) -> float:
        """max_i ||Phi_i||, rounded up."""
        squares = np.einsum("nd,nd->n", self.features, self.features)
        up = 1.0 + (self.features.shape[1] + 8) * 2.0**-53
        return float(math.sqrt(squares.max()) * up)

    def responses(self, weights: Floats) -> Floats:
        """y_i <w, Phi_i>: (N,)."""
        return np.asarray(self.labels * (self.features @ weights))

    def margins(self, weights: Floats) -> Floats:
        """b_i - y_i <w, Phi_i>: (N,), positive where the hinge is active."""
        return np.asarray(self.targets - self.responses(weights))

    def combine(self, coefficients: Floats) -> Floats:
        """sum_i coefficients_i y_i Phi_i: (D,)."""
        return np.asarray((self.labels * coefficients) @ self.features)

    def weights(self, multipliers: Floats) -> Floats:
        """w(a) = (1 / (2 lambda)) sum_i p_i a_i y_i Phi_i: (D,)."""
        return self.combine(self.shares * multipliers) / (2.0 * self.regularisation)

    def curvature(self, diagonal: Floats) -> Floats:
        """2 lambda I + Phi' diag(diagonal) Phi: (D, D), in blocks of rows to bound the memory."""
        size = self.features.shape[1]
        matrix = np.zeros((size, size))
        for start in range(0, len(diagonal), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            scaled = np.sqrt(diagonal[rows])[:, None] * self.features[rows]
            matrix += scaled.T @ scaled
        matrix[np.diag_indices(size)] += 2.0 * self.regularisation
        return matrix


@dataclass
class _State:
    """The iterate: ``a``, ``s`` = 1 - a, ``t``, ``xi`` are (N,) and positive; ``w`` is (D,)."""

    a: Floats
    s: Floats
    t: Floats
    xi: Floats
    w: Floats


@dataclass(frozen=True)
class _Direction:
    """A Newton direction for a state; s moves by -a."""

    a: Floats
    t: Floats
    xi: Floats
    w: Floats


class Iterate(NamedTuple):
    """``multipliers``: (N,) a in [0, 1]; ``weights``: (D,) w, equal to w(a) up to rounding."""

    multipliers: Floats
    weights: Floats


def iterates(problem: Problem, caution: float = 0.005) -> Iterator[Iterate]:
    """One iterate per step, ever closer to the optimum; ends where float64 can go no further.

    ``caution`` in (0, 1): the fraction of the way to the boundary of the box that a step does not
    go; another value takes another path to the same optimum.
    """
    state = _start(problem)
    with np.errstate(all="ignore"):
        while True:
            yield Iterate(np.clip(state.a, 0.0, 1.0), state.w)
            moved = _step(problem, state, 1.0 - caution)
            if moved is None:
                return
            state = moved


def _start(problem: Problem) -> _State:
    """The middle of the box, with slacks as near to the central path as the margins allow."""
    a = np.full(len(problem.shares), 0.5)
    w = problem.weights(a)
    margins = problem.margins(w)
    room = max(1.0, float(np.abs(margins).max())) * problem.shares.min() / problem.shares
    xi = np.maximum(margins, 0.0) + room
    return _State(a, a.copy(), xi - margins, xi, w)


def _step(problem: Problem, state: _State, reach: float) -> _State | None:
    """One predictor-corrector step over ``reach`` of the way to the boundary, or None."""
    p = problem.shares
    theta = 1.0 / (state.xi / state.s + state.t / state.a)
    from scipy.linalg import cho_solve  # slow to import, and a plan is explained without

    factor = _factor(problem.curvature(p * theta))
    if factor is None:
        return None
    margins = problem.margins(state.w)
    unbalanced = problem.combine(p * state.a) - 2.0 * problem.regularisation * state.w
    average = float(np.sum(p * (state.a * state.t + state.s * state.xi))) / (2 * len(p))

    def direction(change_at: Floats, change_sxi: Floats) -> _Direction:
        """Newton's direction that changes a t and s xi by the given amounts, to first order."""
        drive = margins - state.xi + state.t - change_sxi / state.s + change_at / state.a
        dw = cho_solve(factor, unbalanced + problem.combine(p * theta * drive), check_finite=False)
        da = theta * (drive - problem.responses(dw))
        for _ in range(_REFINEMENTS):
            residual = unbalanced + problem.combine(p * da) - 2.0 * problem.regularisation * dw
            correction = cho_solve(factor, residual, check_finite=False)
            dw = dw + correction
            da = da - theta * problem.responses(correction)
        return _Direction(
            da, (change_at - state.t * da) / state.a, (change_sxi + state.xi * da) / state.s, dw
        )

    def products(move: _Direction, length: float) -> tuple[Floats, Floats]:
        """a t and s xi after a step of that length."""
        return (
            (state.a + length * move.a) * (state.t + length * move.t),
            (state.s - length * move.a) * (state.xi + length * move.xi),
        )

    move = direction(-state.a * state.t, -state.s * state.xi)
    length = _length(state, move)
    left = float(sum(np.sum(p * part) for part in products(move, length))) / (2 * len(p))
    target = average * (left / average) ** 3 / p
    change_at = target - state.a * state.t - move.a * move.t
    change_sxi = target - state.s * state.xi + move.a * move.xi
    move = direction(change_at, change_sxi)
    length = _length(state, move)
    for _ in range(_CENTRALITY_CORRECTIONS):
        if length > 0.9:
            break
        at, sxi = products(move, min(1.0, length + 0.3))
        change_at = change_at + np.maximum(
            np.clip(at, 0.1 * target, 10 * target) - at, -10 * target
        )
        change_sxi = change_sxi + np.maximum(
            np.clip(sxi, 0.1 * target, 10 * target) - sxi, -10 * target
        )
        corrected = direction(change_at, change_sxi)
        corrected_length = _length(state, corrected)
        if not corrected_length >= length + 0.03:
            break
        move, length = corrected, corrected_length
    return _moved(state, move, reach * length)


def _factor(matrix: Floats) -> tuple[Floats, bool] | None:
    """Cholesky's factor, with the smallest ridge that makes it exist in spite of rounding.

    Near the optimum the matrix mixes entries of size 2 lambda with others 1e16 times as large.  The
    ridge only slows the refinement in ``_step``, which uses the true matrix.
    """
    from scipy.linalg import cho_factor

    if not np.all(np.isfinite(matrix)):
        return None
    scale = float(np.max(np.diagonal(matrix)))
    for ridge in (0.0, 1e-16, 1e-15, 1e-14, 1e-13):
        matrix[np.diag_indices(len(matrix))] += ridge * scale
        try:
            factor, lower = cho_factor(matrix, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(factor), bool(lower)
    return None


def _length(state: _State, move: _Direction) -> float:
    """The longest step, at most 1, that keeps every variable non-negative."""
    pairs = ((state.a, move.a), (state.s, -move.a), (state.t, move.t), (state.xi, move.xi))
    return min(1.0, *(1.0 / max(1.0, float(np.max(-change / value))) for value, change in pairs))


def _moved(state: _State, move: _Direction, length: float) -> _State | None:
    a = state.a + length * move.a
    s = state.s - length * move.a
    # The smaller of a and s keeps its digits; the other follows, so that a + s = 1 stays true.
    a, s = np.where(a < s, a, 1.0 - s), np.where(a < s, 1.0 - a, s)
    result = _State(
        a, s, state.t + length * move.t, state.xi + length * move.xi, state.w + length * move.w
    )
    sound = all(
        bool(np.all(np.isfinite(part)) and np.all(part > 0.0))
        for part in (result.a, result.s, result.t, result.xi)
    )
    return result if sound and bool(np.all(np.isfinite(result.w))) else None
