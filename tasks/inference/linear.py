"""Linear models from a release of moments, without tables, bins or synthetic records.

The response and every term must be a sum of columns: of numbers and of indicators of categories.  The
formula is computed at weighted points in place of the records (``dpcore.post.points``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcore.arrays import Floats
from dpcore.errors import InputError
from dpcore.post.points import Points
from dpcore.releases.numbers.moments import HIDDEN, Moments
from schemas.plan import Plan
from tasks.inference.designs import numbers_of
from tasks.inference.fit import MOMENTS, Fit, answering, fit_of

EXACT = 1e-9
"""A term may differ from a sum of columns by this fraction of its size, because of rounding."""


def fit_moments(
    plan: Plan, points_of: Callable[[Moments], Points], formula: str, family: str
) -> tuple[str, Fit] | None:
    """The release that answers, and its fit; None if moments cannot answer but tables might.

    Raises ``InputError`` if nothing in the plan can answer, or the model has no solution.
    """
    reasons = []
    for release in plan.of_period.values():
        if not isinstance(release, Moments):
            continue
        try:
            design = linear_design(release, formula, family)
        except InputError as error:
            reasons.append(error)
        else:
            found = fit_points(points_of(release), formula, *design)
            return release.name, found.assuming(plan.assumed)
    if reasons and not answering(plan):
        raise reasons[0]
    return None


def linear_design(release: Moments, formula: str, family: str) -> tuple[list[str], Floats, Floats]:
    """Names of terms, and values of the terms (s, k) and of the response (s,) at the points."""
    if family != "gaussian":
        raise InputError(
            f"family: {release.name} measures moments, which answer linear models; for {family} add a"
            " release of kind microdata-margins over the columns"
        )
    products = release.products
    names, terms, response = numbers_of(formula, release.domain, products.places())
    # Products of at most one column: only their linear combinations are sums of columns.
    once = products.features()[:, products.degrees.sum(axis=1) <= 1]
    for name, values in [("the response", response), *zip(names, terms.T, strict=True)]:
        left = values - once @ np.linalg.lstsq(once, values, rcond=None)[0]
        if np.abs(left).max() > EXACT * np.abs(values).max():
            raise InputError(
                f"{formula}: {name} is not a sum of columns of {release.name}: moments answer models"
                " of untransformed numbers and of categories; add a column for anything else, or a"
                " release of kind microdata-margins over the columns"
            )
    if np.linalg.matrix_rank(terms) < len(names):
        raise InputError(f"{formula}: some terms are sums of others; leave one out")
    return names, terms, response


def fit_points(
    points: Points, formula: str, names: list[str], terms: Floats, response: Floats
) -> Fit:
    try:
        found = points.regression(terms, response)
    except ValueError as error:
        raise InputError(f"{formula}: {error}") from None
    return fit_of(formula, "gaussian", names, found, HIDDEN, MOMENTS)
