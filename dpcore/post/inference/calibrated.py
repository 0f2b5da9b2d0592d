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

Errors, to first order, with J the derivative of the corrected mean of psi:

    privacy     the totals T are sums of noisy cells, so J^-1 c' T has an exact variance
    sampling    J^-1 mean(psi psi') J^-T / n, as for the survey's own records (sandwich)

If the noise is so large that the equations have no solution, one step of Newton's method is taken from
the fit to the records, with their J.

>>> generator = np.random.default_rng(1)
>>> x = generator.integers(0, 2, 4000).astype(float)
>>> z, y = np.column_stack([np.ones(4000), x]), 1 + 2 * x + generator.normal(0, 1, 4000)
>>> features = np.column_stack([z, y, x * y, y * y])
>>> found = fit_calibrated(z, y, FAMILIES["gaussian"], features, features.mean(axis=0), 4000)
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
NEGLIGIBLE = 1e-10
"""Eigenvalues of the features' moments below this share of the largest are rounding errors."""


class Fitted(NamedTuple):
    """A solution of calibrated equations.

    ``coefficients``: (p,); ``sampling``: (p, p) covariance from sampling; ``weights``: (q, p) of the
    features' mean totals in the coefficients, from which the covariance of noise follows; ``spanned``:
    (p,) the share of each score's variance that the tables hold; ``solved``: False after one step only.
    """

    coefficients: Floats
    sampling: Floats
    weights: Floats
    spanned: Floats
    solved: bool


def fit_calibrated(
    design: Floats,
    response: Floats,
    family: Family,
    features: Floats,
    totals: Floats,
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
        rows: The number of records of the survey.

    Raises:
        ValueError: The records do not determine the coefficients.
    """
    count = len(design)
    start = _fit_records(design, response, family)
    # In units of their own, so that features in thousands do not hide those of 0 and 1.
    units = np.sqrt(np.mean(features**2, axis=0)) + 1e-300
    scaled = features / units
    gram = np.linalg.pinv(scaled.T @ scaled / count, rcond=NEGLIGIBLE, hermitian=True)

    def onto(values: Floats) -> Floats:
        """(q, k) the regression of values (m, k) on the features."""
        return np.asarray(gram @ (scaled.T @ values / count) / units[:, None])

    def scores(beta: Floats) -> Floats:
        return np.asarray(design * (response - family.mean(design @ beta))[:, None])

    def slopes(beta: Floats, mean: Callable[[Floats], Floats]) -> Floats:
        slope = family.slope(design @ beta)
        columns = [mean(-design * (slope * column)[:, None]) for column in design.T]
        return np.asarray(np.stack(columns, axis=1))

    def corrected(values: Floats) -> Floats:
        return np.asarray(totals @ onto(values))

    sizes = np.sqrt(np.mean(design**2, axis=0)) + 1e-12
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
    if solved:
        slope, at = slopes(beta, corrected), beta
    else:
        slope, at = slopes(start, lambda values: values.mean(axis=0)), start
        beta = start - np.linalg.solve(slope, corrected(scores(start)))
    inverse, score = np.linalg.inv(slope), scores(at)
    on = onto(score)
    sampling = inverse @ (score.T @ score / count) @ inverse.T / rows
    left = np.mean((score - features @ on) ** 2, axis=0)
    spanned = 1 - left / np.maximum(np.mean(score**2, axis=0), 1e-300)
    return Fitted(beta, sampling, -on @ inverse.T, spanned, solved)


def _limited(step: Any, sizes: Floats, family: Family) -> tuple[Any, float]:
    """A step that is not too long, and its full length; those of linear models are right at once."""
    longest = float(np.max(np.abs(step) * sizes))
    if family.name == "gaussian" or longest <= LONGEST:
        return step, longest
    return step * (LONGEST / longest), longest


def _fit_records(design: Floats, response: Floats, family: Family) -> Floats:
    """The maximum likelihood fit to the records alone (Newton)."""
    scaled = design / (np.sqrt(np.mean(design**2, axis=0)) + 1e-300)
    if np.linalg.matrix_rank(scaled.T @ scaled) < design.shape[1]:
        raise ValueError("the terms are linearly dependent in the records; leave one out")
    sizes = np.sqrt(np.mean(design**2, axis=0)) + 1e-12
    # A little information for each coefficient: as of one record with a response in the middle.
    ridge = np.diag(sizes**2)
    beta = np.zeros(design.shape[1])
    for _ in range(STEPS):
        predictor = design @ beta
        slope = (design.T * family.slope(predictor)) @ design + ridge
        score = design.T @ (response - family.mean(predictor)) - ridge @ beta
        step, longest = _limited(np.linalg.solve(slope, score), sizes, family)
        beta = beta + step
        if longest < CONVERGED * (1 + float(np.max(np.abs(beta) * sizes))):
            return np.asarray(beta)
    raise ValueError("the model has no solution in the records; use fewer terms")
