"""Whether the Newton steps of a curved model have come near its solution, judged by the last scores.

If all responses in a subset of the records are equal, or the terms determine all responses, the solution
lies at infinity.  Then steps never end.  All of them have about the same length, so the error of a step
to first order says nothing about the distance to the solution.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpcore.arrays import Booleans, Floats
from dpcore.releases.models.point import ScorePoint
from dpcore.releases.models.scores import FARTHEST
from dpcore.releases.models.terms import ModelTerms

FEWER = 0.5
"""The coefficient of a subset of the records has not converged if the subset has fewer responses of one
kind than this fraction of the number that the model expects."""

SURELY = 2.5
"""How many standard errors of noise around this number of responses are considered."""

KNOWN = 9.0
"""A subset with a smaller curvature, in standard deviations of its noise, is too uncertain to judge."""

LONG, SIGNIFICANT = 0.1, 3.0
"""Steps have not converged if the last one changes predictors by at least the first number (root mean
square), and is at least the second number of standard errors long."""

STEEPEST = 2.75
"""If numeric terms make predictors differ by more than this root mean square, the bounded steps may have
ended before the solution.  ``subsets_solved`` judges categories."""

MOST_GROWN = 0.7, 1.5
"""The least and the largest factor by which a step is assumed to change slopes."""


def subsets_solved(
    terms: ModelTerms, family: str, point: ScorePoint, scores: Floats, noise: Floats
) -> tuple[Floats, Booleans]:
    """The factor (t, p) by which the curvature of each indicator, or of its base, changed over the step
    before the last (1 for other terms), and which coefficients (t, p) have not converged.

    ``scores``: (t, p) the last noisy sums, each with noise ``noise`` (t,).  In a subset they show the
    number of responses of the rarer kind, relative to the number that the model expects; the ratio is 1
    at the solution.
    """
    sums, needed = terms.subsets
    # From whitened coordinates to sums over the records of each subset (t, m, p).
    into = np.swapaxes(np.linalg.inv(terms.basis[0] @ point.white) @ sums.T, 1, 2)
    curved = into @ np.linalg.inv(point.last.inverse)
    own = np.maximum(np.sum(curved * into, axis=2), 1e-300)

    def mean(steps: Floats) -> Floats:
        """The mean (t, m) of a linear predictor in each subset."""
        return np.asarray(np.einsum("tmp,tp->tm", curved, steps) / own)

    share = np.zeros_like(own)
    if family == "binomial":
        predictor = mean(_whitened(point, point.theta))
        share = 1 / (1 + np.exp(-np.clip(predictor, -FARTHEST, FARTHEST)))
    moved = point.unit[:, None] * mean(point.last.moved)
    changed = np.exp(np.clip(moved * (1 - 2 * share), -FARTHEST, FARTHEST))
    # Curvature is the expected number of the rarer kind times the share of the other.
    expected = own * changed * point.slope[:, None] / np.maximum(share, 1 - share)
    of_score = np.sqrt(point.spread)[:, None] / expected
    beyond = np.einsum("tmp,tp->tm", into, scores) * of_score
    found = 1 + np.where(share > 0.5, -beyond, beyond)
    loose = np.linalg.solve(point.squeeze, np.swapaxes(into, 1, 2))
    error = SURELY * noise[:, None] * np.linalg.norm(loose, axis=1) * of_score
    length = np.linalg.norm(into, axis=2)
    known = own > KNOWN * point.last.blur[:, None] * length**2
    unsolved = _fewer(found, error, needed) & known
    return _least_changed(changed, needed), np.asarray(unsolved @ needed)


def _fewer(found: Floats, error: Floats, needed: Booleans) -> Booleans:
    """Whether subsets (t, m) certainly have fewer responses of the rarer kind than expected, or may have
    none, as the noisy difference of a constant and indicators often shows."""
    none = (found < error) & ((error < 1) | (needed.sum(axis=1) == 1))
    return np.asarray((found < FEWER) & ((found + error < FEWER) | none))


def _least_changed(changed: Floats, needed: Booleans) -> Floats:
    """The smallest factor (t, p) among the subsets (t, m) that a coefficient compares, such as a rare
    base; 1 if it compares none."""
    compared = needed & ~needed.all(axis=1, keepdims=True)
    least = np.min(np.where(compared, changed[:, :, None], np.inf), axis=1, initial=np.inf)
    return np.where(np.isfinite(least), least, 1.0)


def inverse_after_growth(terms: ModelTerms, point: ScorePoint, inverse: Floats) -> Floats:
    """The inverse (t, p, p) of the curvature after the step before the last made all slopes larger by a
    factor 1 + d.

    Let V be the variance of the linear predictor, with records weighted by their curvature.  The
    curvature along the slopes then falls by about (1 + d)^V.  V is small if slopes are small, and
    pi^2/3 if they are so large that only records near the middle count; the number and the predictors
    of these records fall as 1/(1 + d).
    """
    slopes, own, curved = _slopes(terms, point, inverse)
    size = np.maximum(_form(slopes, curved, slopes), 1e-300)
    # Noise may show more than there can be.
    variance = np.minimum(size / _form(own, curved, own), math.pi**2 / 3)
    grown = point.unit * _form(slopes, curved, point.last.moved) / size
    flatter = np.clip(1 + grown, *MOST_GROWN) ** variance
    return np.asarray(
        inverse + ((flatter - 1) / size)[:, None, None] * slopes[:, :, None] * slopes[:, None, :]
    )


def growing(
    terms: ModelTerms, point: ScorePoint, inverse: Floats, step: Floats, noise: Floats
) -> Booleans:
    """Whether (t,) the last step makes all slopes larger, by more than noise and sampling do, and far
    enough to change most means.

    ``inverse``: (t, p, p) of the curvature; ``step``: (t, p); ``noise``: (t,) in a score.
    """
    slopes, _, curved = _slopes(terms, point, inverse)
    loose = np.linalg.solve(point.squeeze, slopes[:, :, None])
    variance = _form(slopes, point.doubts.meat, slopes) + noise**2 * np.sum(loose**2, axis=(1, 2))
    far = point.unit * np.linalg.norm(step, axis=1) >= LONG
    return np.asarray(far & (_form(slopes, curved, step) > SIGNIFICANT * np.sqrt(variance)))


def steep(terms: ModelTerms, point: ScorePoint, inverse: Floats, step: Floats) -> Booleans:
    """Whether (t,) predictors differ by more than ``STEEPEST`` by numeric terms after a step (t, p)."""
    theta = point.theta + point.unit[:, None] * np.einsum("tpq,tq->tp", point.white, step)
    numeric, *_ = _slopes(terms, replace(point, theta=theta * terms.numeric), inverse)
    return np.asarray(np.linalg.norm(numeric, axis=1) > STEEPEST)


def _slopes(terms: ModelTerms, point: ScorePoint, inverse: Floats) -> tuple[Floats, Floats, Floats]:
    """The coefficients (t, p) without the mean of the linear predictor, those of a constant (t, p), both
    in the whitened basis, and the curvature (t, p, p)."""
    curved = np.asarray(np.linalg.inv(inverse))
    theta = _whitened(point, point.theta)
    own = _whitened(point, np.tile(np.eye(terms.size)[terms.constant], (len(theta), 1)))
    level = _form(own, curved, theta) / _form(own, curved, own)
    return theta - level[:, None] * own, own, curved


def _form(one: Floats, matrices: Floats, other: Floats) -> Floats:
    """The bilinear form (t,) of vectors (t, p)."""
    return np.asarray(np.einsum("tp,tpq,tq->t", one, matrices, other))


def _whitened(point: ScorePoint, theta: Floats) -> Floats:
    """Coefficients (t, p) in the whitened basis."""
    return np.asarray(np.linalg.solve(point.white, theta[:, :, None])[:, :, 0])
