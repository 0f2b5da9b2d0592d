r"""Models from noisy tables and records: estimating equations that are calibrated to the tables.

The coefficients beta of a model solve, with z the terms and y the response,

    sum over records of psi = 0,          psi = z (y - mean(z beta)).

Synthetic records have all columns together, but they are shrunk: their tables differ from the survey's.
The noisy tables are unbiased, but have few columns each.  So the sum over the records is corrected by
the tables (a regression estimator, as in survey sampling):

    psi  ~  c_1 f_1 + ... + c_q f_q          regression over the records on features: 1, z_i, y, z_i z_j,
                                             z_i y, y^2, each a function of the columns of one table
    sum over the survey of psi  =  c_1 T_1 + ... + c_q T_q          T_i: noisy totals of the features

The residuals of the regression have mean zero over the records, and are assumed to have mean zero over
the survey.  For a linear model psi is a sum of features, there are no residuals, and the solution solves
the normal equations with noisy moments.  ``spanned``: the share of psi's variance that tables explain.

A curved model is linearised repeatedly, as in Newton's method, with one change.  Linearising at the
solution itself would follow the noise: the solution may be farther from the truth than r, the fit to the
records.  So the last linearisation is at

    r + (1 - p / d) (solution - r),          d = (solution - r)' cov^-1 (solution - r),  1 - p / d >= 0

(James & Stein 1961).  This point is r if noise explains the distance between r and the solution, and
nearly the solution if there is little noise.

Errors, with J the derivative of the corrected mean of psi:

    privacy     the totals T have a known covariance, and J^-1 c' T is linear in them except through J
    sampling    m J^-1 mean(psi psi') J^-T / n, as for the survey's own records (sandwich); m: the most
                records of one unit (``units``)
    assumed     the residual of psi has mean zero over the survey only if columns are related inside
                cells as they are in the records.  Let shares f and g of the variances of x and y lie
                inside cells.  A correlation r there adds r sqrt(f g) standard deviations to the mean of
                (x - mean x)(y - mean y), of which the tables do not explain f + g - f g.  So with f = g
                and r = 1 the mean of psi moves by (1 - spanned) / 2 of its standard deviation, and half
                of that is added as a standard error.  It counts as privacy: without noise cells would
                be narrow.  This is an argument, not a bound; ``benchmarks.unasked`` measures coverage

Noise in J is treated as Fieller (1954) does for a quotient: the interval of a coefficient contains all
values R with (solution - R)^2 <= z^2 variance(R), where the other coefficients solve their equations
given R.  The noise part of variance(R) is a quadratic function of R.  The privacy error gives the
smallest symmetric interval that contains this set; it is infinite if the set is unbounded.

``blur`` is the size of the noise in J: with J0 the derivative in the records and E the noise of
J0^-1/2 J J0^-1/2, the root of the mean of |E|^2 over the rows.  The solution of a curved model depends
on the point of linearisation; if ``blur`` is 1 or more, noise may put that point anywhere.

>>> from dpcore.estimates.families import FAMILIES
>>> generator = np.random.default_rng(1)
>>> x = generator.integers(0, 2, 4000).astype(float)
>>> z, y = np.column_stack([np.ones(4000), x]), 1 + 2 * x + generator.normal(0, 1, 4000)
>>> features = np.column_stack([z, y, x * y, y * y])
>>> totals, silence = features.mean(axis=0), np.zeros((5, 5))
>>> found = fit_calibrated(z, y, FAMILIES["gaussian"], features, totals, silence, 4000)
>>> found.coefficients.round(1).tolist(), found.spanned.round(3).tolist()
([1.0, 2.0], [1.0, 1.0])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpcore.arrays import Floats
from dpcore.estimates.families import Family
from dpcore.estimates.fieller import fieller
from dpcore.post.levels import SIGMAS_95

STEPS = 50
LONGEST = 2.0
"""The largest root mean square change of a curved model's predictor in one step."""

CONVERGED = 1e-8
MOST_LINES = 20
CLOSE = 1e-4

ASSUMED = 0.25
"""The standard error that is added for the unexplained share of a score, as a fraction of this share."""

NEGLIGIBLE = 1e-10
"""Eigenvalues of the features' moments below this share of the largest are rounding errors."""


class Fitted(NamedTuple):
    """A solution of calibrated equations.

    ``coefficients``: (p,); ``sampling``, ``privacy``: (p,) standard errors, infinite where noise hides
    how the terms vary; ``spanned``: (p,) the share of each score's variance that the tables explain;
    ``blur``: the noise in the derivative of the equations, 0 for linear models; if it is 1 or more, the
    errors of a curved model are not valid.
    """

    coefficients: Floats
    sampling: Floats
    privacy: Floats
    spanned: Floats
    blur: float


def fit_calibrated(
    design: Floats,
    response: Floats,
    family: Family,
    features: Floats,
    totals: Floats,
    noise: Floats,
    rows: float,
    weights: Floats | None = None,
    most: int = 1,
    change: Floats | None = None,
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
        weights: (m,) of the records, by default equal.  Records of negligible weight define features
            where there are no other records.
        most: The records that one unit may have, which need not be independent.
        change: (p, p) from the coefficients of the design to the requested ones, by default the
            identity.

    Raises:
        ValueError: The records do not determine the coefficients.
    """
    if weights is None:
        weights = np.ones(len(design))
    distinct = _distinct(design, response, features, weights / weights.sum())
    known = _Known(*distinct, family, totals, noise, rows, most)
    start = _fit_records(known.design, known.response, family, known.shares * rows)
    line, sizes = known.line(start), np.sqrt(known.shares @ known.design**2)
    for _ in range(MOST_LINES if family.name != "gaussian" else 0):
        away = line.solution - start
        try:
            distance = float(away @ np.linalg.solve(sum(line.errors(line.solution)), away))
        except np.linalg.LinAlgError:  # some term has no error at all, as in exact tables
            distance = np.inf
        to = start + max(0.0, 1.0 - len(start) / max(distance, 1e-300)) * away
        if not np.all(np.isfinite(to)) or np.allclose(to, line.at, rtol=CLOSE, atol=0.0):
            break
        line = known.line(line.at + _limited(to - line.at, sizes, family)[0])
    blur = 0.0 if family.name == "gaussian" else known.line(start).blur
    if change is None:
        change = np.eye(len(line.solution))
    return Fitted(change @ line.solution, *line.standard_errors(change), line.spanned, blur)


@dataclass(frozen=True, eq=False)
class _Known:
    """Distinct records, the share (m,) of each, and other arguments of ``fit_calibrated``."""

    design: Floats
    response: Floats
    features: Floats
    shares: Floats
    family: Family
    totals: Floats
    noise: Floats
    rows: float
    most: int

    @cached_property
    def _regression(self) -> tuple[Floats, Floats]:
        # Each in its own unit, so that features in thousands do not hide features of 0 and 1.
        units = np.sqrt(self.shares @ self.features**2)
        units = np.where(units > 0, units, np.inf)  # a feature that is always zero explains nothing
        moments = self.features.T * self.shares / units[:, None]
        gram = moments @ self.features / units
        inverse = np.linalg.pinv(gram, rcond=NEGLIGIBLE, hermitian=True)
        return np.asarray(inverse / units[:, None]), moments

    def onto(self, values: Floats) -> Floats:
        """(q, k) the regression of values (m, k) on the features."""
        inverse, moments = self._regression
        return np.asarray(inverse @ (moments @ values))

    def line(self, at: Floats) -> _Linearised:
        predictor = self.design @ at
        score = self.design * (self.response - self.family.mean(predictor))[:, None]
        slope = -self.design * self.family.slope(predictor)[:, None]
        columns = [self.onto(slope * column[:, None]) for column in self.design.T]
        return _Linearised(self, at, score, slope, self.onto(score), np.stack(columns, axis=-1))


@dataclass(frozen=True, eq=False)
class _Linearised:
    """The equations, linearised at the coefficients ``at``.

    ``score``: (m, p) of the records; ``slope``: (m, p) its derivative by the predictor; ``on``: (q, p)
    its regression on the features; ``on_change``: (q, p, p) its derivative by coefficients.
    """

    known: _Known
    at: Floats
    score: Floats
    slope: Floats
    on: Floats
    on_change: Floats

    @cached_property
    def inverse(self) -> Floats:
        try:
            slope = np.tensordot(self.known.totals, self.on_change, 1)
            return np.asarray(np.linalg.inv(slope))
        except np.linalg.LinAlgError:
            raise ValueError(
                "the noise is too large to distinguish the terms; use fewer of them"
            ) from None

    @cached_property
    def solution(self) -> Floats:
        return np.asarray(self.at - self.inverse @ (self.known.totals @ self.on))

    @property
    def blur(self) -> float:
        known = self.known
        expected = -np.tensordot(known.shares @ known.features, self.on_change, 1)
        sizes, directions = np.linalg.eigh((expected + expected.T) / 2)
        whiten = directions / np.sqrt(np.maximum(sizes, NEGLIGIBLE * sizes[-1]))
        change = (whiten.T @ self.on_change @ whiten).reshape(len(known.totals), -1)
        return float(np.sqrt(np.sum(change * (known.noise @ change)) / len(expected)))

    @cached_property
    def left(self) -> Floats:
        """(m, p) the residuals of the scores' regression on the features."""
        return np.asarray(self.score - self.known.features @ self.on)

    @cached_property
    def spanned(self) -> Floats:
        shares = self.known.shares
        return np.asarray(1 - shares @ self.left**2 / np.maximum(shares @ self.score**2, 1e-300))

    def standard_errors(self, change: Floats) -> tuple[Floats, Floats]:
        """(p,) each, of ``change`` times the solution: from sampling, and from all else, large enough
        that intervals contain Fieller's sets."""
        known = self.known
        moved = self.solution - self.at
        inverse = change @ self.inverse
        score = (self.score + self.slope * (known.design @ moved)[:, None]) @ inverse.T
        sampling = known.shares @ score**2 * (known.most / known.rows)
        lacking = self.left * np.sqrt(np.clip(1 - self.spanned, 0, 1)) @ inverse.T
        assumed = ASSUMED**2 * (known.shares @ lacking**2)
        found = []
        for j, direction in enumerate((self.inverse @ change.T).T):
            along, fixed = float(change[j] @ direction), sampling[j] + assumed[j]
            step = (fixed + self._noise(inverse[j], 0.0 * direction)) ** 0.5
            if step == 0 or along == 0:
                found.append(0.0 if along else np.inf)
                continue
            # Coefficients that solve the other equations if this one is a step away.
            away = direction * (step / along)
            below, at, above = (self._noise(inverse[j], k * away) for k in (-1, 0, 1))
            of_divisor = ((above + below) / 2 - at) / step**2
            covariance = (below - above) / (4 * step)
            ends = fieller(0.0, fixed + at, 1.0, of_divisor, covariance, SIGMAS_95)
            width = max(-ends[0][0], ends[-1][1])
            found.append(max((width / SIGMAS_95) ** 2 - sampling[j], 0.0) ** 0.5)
        return np.sqrt(sampling), np.array(found)

    def _noise(self, inverse: Floats, away: Floats) -> float:
        """The noise variance of a coefficient if the true coefficients are the solution plus ``away``;
        ``inverse``: (p,) its derivative by each equation."""
        moved = self.solution + away - self.at
        weights = (self.on + self.on_change @ moved) @ inverse
        return float(weights @ self.known.noise @ weights)

    def errors(self, true: Floats) -> tuple[Floats, Floats]:
        """Covariances of the solution from sampling and from noise, if these coefficients are true."""
        known, moved = self.known, true - self.at
        score = self.score + self.slope * (known.design @ moved)[:, None]
        spread = (score.T * known.shares) @ score * (known.most / known.rows)
        weights = (self.on + self.on_change @ moved) @ self.inverse.T
        return self.inverse @ spread @ self.inverse.T, weights.T @ known.noise @ weights


def _distinct(
    design: Floats, response: Floats, features: Floats, shares: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The distinct records, and the share of each."""
    # With probability one, different rows have different projections.
    generator, columns = np.random.default_rng(0), (design, response[:, None], features)
    keys = sum(each @ generator.normal(size=each.shape[1]) for each in columns)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    together = np.bincount(places, shares).astype(np.float64)
    return design[first], response[first], features[first], together


def _limited(step: Any, sizes: Floats, family: Family) -> tuple[Any, float]:
    """The step, shortened if too long (except in linear models), and its full length."""
    longest = float(np.max(np.abs(step) * sizes))
    if family.name == "gaussian" or longest <= LONGEST:
        return step, longest
    return step * (LONGEST / longest), longest


def _fit_records(design: Floats, response: Floats, family: Family, counts: Floats) -> Floats:
    """The maximum likelihood fit to the records alone, with ``counts`` of each (Newton)."""
    sizes = np.sqrt(counts @ design**2 / counts.sum()) + 1e-12
    scaled = design / sizes
    if np.linalg.matrix_rank((scaled.T * counts) @ scaled) < design.shape[1]:
        raise ValueError("the terms are linearly dependent in the records; leave one out")
    # A little information for each coefficient, as from one record with a response in the middle:
    # otherwise a term that determines the response would have no finite coefficient.
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
