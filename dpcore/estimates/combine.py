r"""One answer from several implicates: files of records that differ as the noise may have been.

Implicate m is made of whole records whose tables are as near to T + e_m as tables of records come: T are
the unbiased noisy tables, and e_1 .. e_M are drawn from the law of their noise, less their mean, times
sqrt(M / (M + 1)).  Each has as many records as the survey.  An analysis gives estimates q_m with the
variances u_m that it would have as a survey's; then

    estimate      Q = mean of q_m
    sampling      U = mean of u_m
    privacy       (1 + 1/M) B,        B = sum of (q_m - Q)^2 / (M - 1)
    total         U + (1 + 1/M) B,    degrees of freedom (M - 1) (1 + U / ((1 + 1/M) B))^2

In form these are the rules of Rubin (1987, 3.1.2 to 3.1.6), so his programs serve; the reason is
another.

**Claim.**  Let q be linear in the tables with noise of variance V in q(T), let the tables be reached,
and let the drawing of whole records add independent errors of variance D to each q_m.  Then
Q = q(T) + an error of variance D / M, and E B = V M / (M + 1) + D, so that

    E (1 + 1/M) B = V + D (1 + 1/M),        while the error of Q from privacy is V + D / M.

*Proof.*  The redraws less their mean add up to zero, so they leave Q alone, which is why its error has
no part V / M, as it has in Rubin's case, where imputations are not centred.  Their covariance divided by
M - 1 has the expectation of the noise's, before the factor M / (M + 1).  The errors of drawing are
independent.  QED

So the total is right where D is small, and D too large at most.  U belongs in it because the records are
fitted to the survey's own noisy tables: their drawing carries no sampling variance.  (Had they been
drawn independently from a model, D would be U itself, and the total without U right: Raghunathan, Reiter
& Rubin 2003.)

**Conditions.**  q is smooth enough to be linear over the noise, and a function of measured tables; what
more it assumes is in no error.  Tables with cells near zero are not reached where T + e_m is negative,
and then B would be too small: the redraws are made larger, which serves most questions and not all
(``dpcore.post.records.implicates``; ``tasks.bundle.implicates`` says for which pairs of columns).  The
number of records is the public one, or the noisy one of the release: shares, means and coefficients
hardly depend on it, while totals of records have an error that the tables state and implicates lack.

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

    ``variances`` are squares of standard errors; where they are of independent records and one unit may
    have several, ``rows_per_unit`` of them bounds the sampling error (``units``).  Raises ``ValueError``
    for fewer than two implicates.
    """
    found, within = (np.asarray(each, dtype=np.float64) for each in (estimates, variances))
    if found.shape != within.shape or found.ndim < 1 or len(found) < 2:
        raise ValueError("estimates and variances: one row for each of two implicates at least")
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
