r"""One answer from several implicates: files of synthetic records that vary as the noise does.

The tables of implicate m are as near to T + e_m as tables of whole records can be: T are the unbiased
noisy tables, and e_1 .. e_M are draws from the law of their noise, minus their mean, times sqrt(M / (M +
1)).  Each implicate has as many records as the survey.  Analysing implicate m as a survey gives an
estimate q_m with variance u_m; then

    estimate      Q = mean of q_m
    sampling      U = mean of u_m
    privacy       (1 + 1/M) B,        B = sum of (q_m - Q)^2 / (M - 1)
    total         U + (1 + 1/M) B,    degrees of freedom (M - 1) (1 + U / ((1 + 1/M) B))^2

These are Rubin's formulas (1987, 3.1.2 to 3.1.6), so programs for multiple imputation apply; the proof
differs.

**Claim.**  Let q be linear in the tables with noise of variance V in q(T), let the tables be reached,
and let the drawing of whole records add independent errors of variance D to each q_m.  Then
Q = q(T) + an error of variance D / M, and E B = V M / (M + 1) + D, so that

    E (1 + 1/M) B = V + D (1 + 1/M),        while the error of Q from privacy is V + D / M.

*Proof.*  The redraws minus their mean add up to zero, so they do not change Q.  Its error therefore has
no part V / M, unlike Rubin's, whose imputations are not centred.  Before the factor M / (M + 1), the
expected sample covariance of the redraws is the covariance of the noise.  The errors of drawing are
independent.  QED

So the total is right where D is small, and at most D too large.  U belongs in it because the records are
fitted to the survey's own noisy tables: their drawing carries no sampling variance.  (If they were drawn
independently from a model, D would be U, and the total without U would be right: Raghunathan, Reiter &
Rubin 2003.)

**Conditions.**  q is smooth enough to be linear over the noise, and a function of measured tables;
errors do not include its other assumptions.  Tables with cells near zero are not reached where T + e_m
is negative, and then B would be too small: the redraws are made larger, which helps most questions
(``dpcore.post.records.implicates``; ``tasks.bundle.implicates`` says for which pairs of columns).  The
number of records is the public one, or the noisy one of the release: shares, means and coefficients
hardly depend on it, but totals of records have an error that only the tables state.

>>> estimates, variances = np.array([[2.1], [1.9], [2.3], [1.7]]), np.full((4, 1), 0.01)
>>> found = combine(estimates, variances)
>>> found.estimate.round(2).tolist(), found.sampling_error.round(2).tolist()
([2.0], [0.1])
>>> found.privacy_error.round(2).tolist(), found.degrees.round(1).tolist()
([0.29], [3.8])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from dpcore.arrays import Floats


@dataclass(frozen=True, eq=False)
class Combined:
    """Combined estimates, their standard errors and degrees of freedom: (p,) each."""

    estimate: Floats
    sampling_error: Floats
    privacy_error: Floats
    degrees: Floats

    @property
    def standard_error(self) -> Floats:
        return np.hypot(self.sampling_error, self.privacy_error)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Both ends of intervals, (p,) each."""
        width = stdtrit(self.degrees, (1 + level) / 2) * self.standard_error
        return self.estimate - width, self.estimate + width


def combine(estimates: ArrayLike, variances: ArrayLike, rows_per_unit: int = 1) -> Combined:
    """Combine estimates of implicates (M, p) and their variances (M, p), as from M surveys.

    ``variances``: squared standard errors.  If they assume independent records, but a unit may have
    several, multiplying them by ``rows_per_unit`` bounds the sampling variance (``units``).  Raises
    ``ValueError`` for fewer than two implicates.
    """
    found, within = (np.asarray(each, dtype=np.float64) for each in (estimates, variances))
    if found.shape != within.shape or found.ndim < 1 or len(found) < 2:
        raise ValueError("estimates and variances: one row for each of at least two implicates")
    if rows_per_unit < 1:
        raise ValueError("rows_per_unit: must be 1 or more")
    if not np.all(within >= 0):
        raise ValueError("variances: must not be negative or missing; leave such implicates out")
    number = len(found)
    sampling = rows_per_unit * within.mean(axis=0)
    privacy = (1 + 1 / number) * found.var(axis=0, ddof=1)
    ratio = np.divide(sampling, privacy, out=np.full_like(sampling, np.inf), where=privacy > 0)
    degrees = (number - 1) * (1 + ratio) ** 2
    return Combined(found.mean(axis=0), np.sqrt(sampling), np.sqrt(privacy), degrees)
