r"""Weighted points in place of records, from noisy sums of products.

A polynomial of degree 4 is determined by its values at as many points as there are products, so that

    sum over the records of f  =  sum over the points of w f,         for every such f,

with weights w, some negative, that are linear in the sums of the products.  A record changes an estimate
by its influence psi, here a polynomial of degree 2, so that to first order

    sampling^2 = S = m * sum of w psi^2          at most m records of one unit (``units``)
    privacy^2  = P = variance of the noise * |c|^2,       psi = sum of c phi over the products

S is itself noisy, with a standard error t.  ``usual`` is its value if the response had constant variance
(for covariances: if the columns were normal); S is shrunken towards it by the part of the difference
that noise explains (as James & Stein 1961), which leaves a share s of the noise.  S + P then has about
2 (S + P)^2 / (s t)^2 degrees of freedom (Satterthwaite 1946).  The stated sampling error is increased
so that normal intervals are as wide as those of Student's law.

``blur`` is the relative standard error of the noise in the divisor of an estimate, which is the number
of records in a group, or the variance of a term given the other terms.  Beyond ``MOST_BLUR``
first-order errors are unreliable, and there is no interval.

The points (``dpcore.releases.numbers.products``): exponent j of a number becomes its j-th node,
coordinate j of a category its j-th category.  A polynomial whose exponents hold all smaller ones is
determined by its values there (Dyn & Floater 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.special import stdtrit

from dpcore.arrays import Floats
from dpcore.post.levels import SIGMAS_95

MOST_BLUR = 1 / 3

FEWEST_DEGREES = 1.0


class Estimated(NamedTuple):
    """Estimates (k,) with their standard errors, which are infinite if there is no interval."""

    values: Floats
    sampling: Floats
    privacy: Floats


@dataclass(frozen=True, eq=False)
class Points:
    """Points (s,) with the noisy sums of their products.

    ``features``: (s, s) the products phi at each point; ``sums``: (s,) over the records; ``stddev``:
    (s,) of the noise in each sum; ``most``: the most records of one unit.
    """

    features: Floats
    sums: Floats
    stddev: Floats
    most: int = 1

    @cached_property
    def _factors(self) -> Any:
        return lu_factor(self.features)

    @cached_property
    def weights(self) -> Floats:
        """The weights w (s,) of the points."""
        return np.asarray(lu_solve(self._factors, self.sums, trans=1))

    @property
    def rows(self) -> float:
        """The number of records; noisy if it is private."""
        return float(self.weights.sum())

    def noise(self, values: Floats) -> Floats:
        """The standard deviations (k,) of the noise in sums of functions with values (s, k)."""
        coefficients = lu_solve(self._factors, values)
        return np.asarray(np.linalg.norm(self.stddev[:, None] * coefficients, axis=0))

    def estimated(
        self, values: Floats, influence: Floats, usual: Floats, blur: Floats
    ) -> Estimated:
        """Estimates (k,) with their errors, from the influences (s, k) at the points."""
        privacy, squares = self.noise(influence) ** 2, influence**2
        sampling, error = self.most * (self.weights @ squares), self.most * self.noise(squares)
        usual = self.most * usual
        excess = sampling - usual
        share = excess**2 / np.maximum(excess**2 + error**2, 1e-300)
        sampling = np.maximum(usual + share * excess, 0.0)
        both = sampling + privacy
        doubt = np.maximum(share * error / np.maximum(both, 1e-300), 1e-6)
        degrees = np.maximum(2 / doubt**2, FEWEST_DEGREES)
        wider = stdtrit(degrees, 0.975) / SIGMAS_95
        stated = np.maximum(wider**2 * both - privacy, sampling)
        hidden = ~(blur < MOST_BLUR) | ~(both > 0)
        return Estimated(
            values,
            np.where(hidden, np.inf, np.sqrt(stated)),
            np.where(hidden, np.inf, np.sqrt(privacy)),
        )

    def means(self, values: Floats, part: Floats) -> Estimated:
        """Means (k,) of values (s, k) over the records for which the indicator ``part`` (s,) is 1."""
        # Noise may make the number of records zero or negative; the large blur then hides the mean.
        count = max(float(self.weights @ part), 1.0)
        found = self.weights @ (values * part[:, None]) / count
        influence = (values - found) * part[:, None] / count
        usual = np.maximum(self.weights @ ((values - found) ** 2 * part[:, None]), 0) / count**2
        blur = self.noise(part[:, None]) / count
        return self.estimated(found, influence, usual, np.broadcast_to(blur, found.shape))

    def covariances(self, one: Floats, other: Floats) -> Estimated:
        """Covariances of two sets of values (s, k); variances if both are the same."""
        rows = max(self.rows, 1.0)
        one, other = (each - self.weights @ each / rows for each in (one, other))
        found, *squares = (
            self.weights @ each / rows for each in (one * other, one * one, other * other)
        )
        usual = np.maximum(np.prod(squares, axis=0) + found**2, 0) / rows
        blur = np.broadcast_to(self.noise(np.ones((len(one), 1))) / rows, found.shape)
        return self.estimated(found, (one * other - found) / rows, usual, blur)

    def regression(self, terms: Floats, response: Floats) -> Estimated:
        """The least-squares coefficients (k,) of a response (s,) on terms (s, k).

        Raises ``ValueError`` if no records can have the noisy moments of the terms.
        """
        # Scaled, because terms in very different units would look collinear.
        scale = np.abs(terms).max(axis=0)
        terms = terms / scale
        moments = terms.T @ (self.weights[:, None] * terms)
        if np.linalg.eigvalsh(moments)[0] <= 1e-10 * np.trace(moments):
            raise ValueError("noise hides how the terms vary together; use fewer terms")
        inverse = np.linalg.inv(moments)
        found = inverse @ (terms.T @ (self.weights * response))
        partial, residuals = terms @ inverse, response - terms @ found
        degrees = max(self.rows - len(found), 1.0)
        spread = max(float(self.weights @ residuals**2), 0.0) / degrees
        estimated = self.estimated(
            found,
            partial * residuals[:, None],
            spread * np.diag(inverse),
            self.noise(partial**2) / np.diag(inverse),
        )
        return Estimated(*(each / scale for each in estimated))
