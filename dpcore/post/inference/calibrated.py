r"""Models from noisy tables and records: estimating equations that are calibrated to the tables.

The coefficients beta of a model solve, with z the terms and y the response,

    sum over records of psi = 0,          psi = z (y - mean(z beta)).

Synthetic records have all columns together, but they are shrunk: their tables are not those of the
survey.  The noisy tables are unbiased, but have few columns each.  So the sum is taken over the records,
and corrected by what the tables say better (a regression estimator, as in survey sampling):

    psi  ~  c_1 f_1 + ... + c_q f_q          regression over the records on features: 1, z_i, y, z_i z_j,
                                             z_i y, y^2, each a function of the columns of one table
    sum over the survey of psi  =  c_1 T_1 + ... + c_q T_q          T_i: noisy totals of the features

The residuals of the regression have mean zero over the records, and are taken to have it over the
survey.  For a linear model psi is a sum of features, nothing is left over, and the solution is that of
the normal equations with noisy moments.  ``spanned`` says how much of psi the tables hold.

Errors, with J the derivative of the corrected mean of psi:

    privacy     the totals T have a known covariance, and J^-1 c' T is linear in them
    sampling    J^-1 mean(psi psi') J^-T / n, as for the survey's own records (sandwich)

If the noise is so large that the equations have no solution, one step of Newton's method is taken from
the fit to the records, with their J.

The errors depend on the coefficients, since J and c are as noisy as T: at the estimate they are smaller
on one side of the truth than on the other.  So the interval of a coefficient b holds the values that a
test does not reject whose errors are those of the hypothesis (Fieller 1954; Rao's score test),

    (J^-1 c' T)_b^2  <=  1.96^2 variance of it,        all at b + t,

the other coefficients moved along with b as their covariance says.  Of both sides quadratic functions
of t are taken, through the estimate and 1.96 errors on either side of it; for a linear model they are
exact but for J^-1.  An interval has no end where the noise does not allow one.

>>> generator = np.random.default_rng(1)
>>> x = generator.integers(0, 2, 4000).astype(float)
>>> z, y = np.column_stack([np.ones(4000), x]), 1 + 2 * x + generator.normal(0, 1, 4000)
>>> features = np.column_stack([z, y, x * y, y * y])
>>> totals, silence = features.mean(axis=0), np.zeros((5, 5))
>>> found = fit_calibrated(z, y, FAMILIES["gaussian"], features, totals, silence, 4000)
>>> found.coefficients.round(1).tolist(), found.solved, found.spanned.round(3).tolist()
([1.0, 2.0], True, [1.0, 1.0])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpcore.arrays import Floats
from dpcore.post.inference.families import FAMILIES, Family

__all__ = ["FAMILIES", "Fitted", "fit_calibrated"]

STEPS = 50
LONGEST = 2.0
"""The most that a step changes the predictor of a curved model by, at the root mean square."""

CONVERGED = 1e-8
NORMAL_95 = 1.959963984540054

FARTHEST = 20.0
"""Ends of intervals farther than this many times 1.96 errors are no ends."""

NEGLIGIBLE = 1e-10
"""Eigenvalues of the features' moments below this share of the largest are rounding errors."""


class Fitted(NamedTuple):
    """A solution of calibrated equations.

    ``coefficients``: (p,); ``sampling``, ``privacy``: (p, p) covariances; ``ends``: (p, 2) of 95%
    intervals; ``spanned``: (p,) the share of each score's variance that the tables hold; ``solved``:
    False after one step only.
    """

    coefficients: Floats
    sampling: Floats
    privacy: Floats
    ends: Floats
    spanned: Floats
    solved: bool


def fit_calibrated(
    design: Floats,
    response: Floats,
    family: Family,
    features: Floats,
    totals: Floats,
    noise: Floats,
    rows: float,
) -> Fitted:
    """Fit a model to records, calibrated to noisy totals of features.

    Post-processing: all arguments are public.

    Args:
        design: (m, p) of m records; rows of zeros for records that the model leaves out.
        response: (m,), zero where a record is left out.
        family: Mean and slope of the response.
        features: (m, q) of the records; one is 1, or they add up to it.
        totals: (q,) noisy unbiased totals of the features in the survey, divided by ``rows``.
        noise: (q, q) covariance of the noise in the totals.
        rows: The number of records of the survey.

    Raises:
        ValueError: The records do not determine the coefficients.
    """
    design, response, features, shares = _distinct(design, response, features)
    start = _fit_records(design, response, family, shares * rows)
    # In units of their own, so that features in thousands do not hide those of 0 and 1.
    units = np.sqrt(shares @ features**2) + 1e-300
    scaled = features / units
    moments = scaled.T * shares
    gram = np.linalg.pinv(moments @ scaled, rcond=NEGLIGIBLE, hermitian=True)

    def onto(values: Floats) -> Floats:
        """(q, k) the regression of values (m, k) on the features."""
        return np.asarray(gram @ (moments @ values) / units[:, None])

    def scores(beta: Floats) -> Floats:
        return np.asarray(design * (response - family.mean(design @ beta))[:, None])

    def slopes(beta: Floats, mean: Callable[[Floats], Floats]) -> Floats:
        slope = family.slope(design @ beta)
        columns = [mean(-design * (slope * column)[:, None]) for column in design.T]
        return np.asarray(np.stack(columns, axis=1))

    def corrected(values: Floats) -> Floats:
        return np.asarray(totals @ onto(values))

    def plain(values: Floats) -> Floats:
        return np.asarray(shares @ values)

    sizes = np.sqrt(shares @ design**2) + 1e-12
    beta, solved = start, False
    for _ in range(STEPS):
        try:
            step = -np.linalg.solve(slopes(beta, corrected), corrected(scores(beta)))
        except np.linalg.LinAlgError:
            break
        if not np.all(np.isfinite(step)):
            break
        step, longest = _limited(step, sizes, family)
        beta = beta + step
        if longest < CONVERGED * (1 + float(np.max(np.abs(beta) * sizes))):
            solved = True
            break
    slope, at = (slopes(beta, corrected), beta) if solved else (slopes(start, plain), start)
    inverse, score = np.linalg.inv(slope), scores(at)
    if not solved:
        beta = start - inverse @ corrected(score)

    def errors(inverse: Floats, score: Floats) -> tuple[Floats, Floats]:
        """Covariances of a step from sampling and from noise."""
        step = onto(score) @ inverse.T
        spread = inverse @ ((score.T * shares) @ score) @ inverse.T / rows
        return spread, step.T @ noise @ step

    sampling, privacy = errors(inverse, score)
    together = sampling + privacy
    wide = NORMAL_95 * np.sqrt(np.maximum(together.diagonal(), 0.0))
    ends = np.column_stack([beta - wide, beta + wide])
    for place in np.flatnonzero(wide > 0) if solved else ():
        along = together[place] / together[place, place] * wide[place]
        steps, variances = np.zeros(3), np.full(3, together[place, place])
        for side in (-1, 1):
            moved = beta + side * along
            there = np.linalg.pinv(slopes(moved, corrected))
            score_there = scores(moved)
            steps[side] = (there @ corrected(score_there))[place] / wide[place]
            variances[side] = sum(each[place, place] for each in errors(there, score_there))
        ends[place] += _ends(steps, NORMAL_95**2 * variances / wide[place] ** 2) * wide[place]
    left = shares @ (score - features @ onto(score)) ** 2
    spanned = 1 - left / np.maximum(shares @ score**2, 1e-300)
    return Fitted(beta, sampling, privacy, ends, spanned, solved)


def _ends(steps: Floats, squares: Floats) -> Floats:
    """(2,) how far the ends of an interval are from beta -+ 1, in the unit in which these are given.

    ``steps``: (3,) to the estimate from 0, 1 and -1; ``squares``: the largest squares of steps there
    that a test does not reject.  Both are taken to be quadratic between and beyond.
    """
    step, square = (
        np.poly1d([(each[1] + each[-1]) / 2 - each[0], (each[1] - each[-1]) / 2, each[0]])
        for each in (steps, squares)
    )
    rejected = step * step - square
    roots = np.roots(rejected)
    real = np.append(roots[np.abs(roots.imag) < NEGLIGIBLE].real, [-np.inf, np.inf])
    found = np.array([real[real < 0].max(), real[real > 0].min()])
    endless = (np.abs(found) > FARTHEST) | (rejected([-FARTHEST, FARTHEST]) <= 0)
    return np.where(endless, [-np.inf, np.inf], found) - [-1.0, 1.0]


def _distinct(
    design: Floats, response: Floats, features: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Different records only, and the share of each."""
    everything = np.column_stack([design, response, features])
    # Different rows have different projections, but with probability zero.
    weights = np.random.default_rng(0).normal(size=everything.shape[1])
    keys = np.sum(everything * weights, axis=1)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return design[first], response[first], features[first], counts / len(design)


def _limited(step: Any, sizes: Floats, family: Family) -> tuple[Any, float]:
    """A step that is not too long, and its full length; those of linear models are right at once."""
    longest = float(np.max(np.abs(step) * sizes))
    if family.name == "gaussian" or longest <= LONGEST:
        return step, longest
    return step * (LONGEST / longest), longest


def _fit_records(design: Floats, response: Floats, family: Family, counts: Floats) -> Floats:
    """The maximum likelihood fit to the records alone (Newton), so many of each."""
    sizes = np.sqrt(counts @ design**2 / counts.sum()) + 1e-12
    scaled = design / sizes
    if np.linalg.matrix_rank((scaled.T * counts) @ scaled) < design.shape[1]:
        raise ValueError("the terms are linearly dependent in the records; leave one out")
    # A little information for each coefficient: as of one record with a response in the middle.
    ridge = np.diag(sizes**2)
    beta = np.zeros(design.shape[1])
    for _ in range(STEPS):
        predictor = design @ beta
        slope = (design.T * (counts * family.slope(predictor))) @ design + ridge
        score = design.T @ (counts * (response - family.mean(predictor))) - ridge @ beta
        step, longest = _limited(np.linalg.solve(slope, score), sizes, family)
        beta = beta + step
        if longest < CONVERGED * (1 + float(np.max(np.abs(beta) * sizes))):
            return np.asarray(beta)
    raise ValueError("the model has no solution in the records; use fewer terms")
