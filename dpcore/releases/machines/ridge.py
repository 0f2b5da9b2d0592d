"""Least squares from noisy mean products, by a ridge as large as their noise, with class weights.

**Fit.**  With G the noisy mean products of the row (1, z) and b those with the label, theta = G^-1 b,
where G has a ridge on all but the intercept: PENALTY * s * sqrt(d), s the standard deviation of the
noise in a mean product, d the length of the row.  It is of the order of the noise's own eigenvalues, the
largest of which is about 2 s sqrt(d).  Eigenvalues that noise made negative count as 0.
The ridge depends on public numbers alone.  It shrinks curves towards 0: this is no part of the stated
errors, which are about noise.

**Class weights.**  With g the first column of G, r+ = (g + b)/2 and r- = (g - b)/2 are the sums of the
rows of either side over the number of records, and p+ and p-, their first numbers, the shares of both.
Let every record of the positive side count u times, and one of the negative side v times,
u p+ + v p- = 1.  If features have the same spread about their means on both sides, then G and b become

    G + (u - 1) r+ r+^T / p+ + (v - 1) r- r-^T / p-    and    u r+ - v r-

Balanced weights are u = 1/(2 p+), v = 1/(2 p-).  With weights no share counts as less than two standard
deviations of the noise in b.

**Errors.**  To first order the noise E in G and e in b moves theta by G^-1 (K e + J E_0 - E theta), with
E_0 the first column of E: normal, with a variance that follows from theta and the noise alone.  K and J
are the derivatives by b and g of the weighted b less what weights add to G, times theta; without weights
the identity and 0.

Source.  Least squares from noisy moments with a ridge as large as the noise: Wang 2018 ("Revisiting
differentially private linear regression", AdaSSP), who chooses the ridge by a private eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats

PENALTY = 0.7
"""Of the tables of ``python -m benchmarks.classifiers``, the best of 0.25, 0.35, 0.5, 0.7 and 1."""


@dataclass(frozen=True)
class RidgeFit:
    """theta (d,), and what its errors follow from; all of it public.

    ``inverse``: G^-1 (d, d); ``measured``: which products have noise (d, d); ``stddevs``: of the noise
    in products and in b; ``centres``: (d,) noisy means of the row; ``moved``: K and J, (d, d) each.
    """

    theta: Floats
    inverse: Floats
    measured: NDArray[np.bool_]
    stddevs: tuple[float, float]
    centres: Floats
    moved: tuple[Floats, Floats]

    @cached_property
    def covariance(self) -> Floats:
        """Of the noise in theta, to first order: (d, d)."""
        product, label = self.stddevs
        noisy = (self.measured | self.measured.T).astype(np.float64)
        by_label, by_mean = self.moved
        # (E theta)_i and (E theta)_k share the one number E_ik.
        shared = noisy * np.outer(self.theta, self.theta)
        np.fill_diagonal(shared, noisy @ self.theta**2)
        # E_0j is in (E theta)_j, and in (E theta)_0.
        first = np.diag(noisy[0] * self.theta[0])
        first[0] = noisy[0] * self.theta
        both = by_mean @ first.T
        shared += by_mean * noisy[0] @ by_mean.T - both - both.T
        shared = product**2 * shared + label**2 * by_label @ by_label.T
        return np.asarray(self.inverse @ shared @ self.inverse.T)

    def errors(self, rows: Floats) -> Floats:
        """Standard deviations of the noise in rows @ theta, (k,) of (k, d)."""
        variances = np.einsum("ki,ij,kj->k", rows, self.covariance, rows)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))


@dataclass(frozen=True)
class Sides:
    """``rows``: r+ and r-, (d,) each; ``weights``: u and v; ``slopes``: (2, 2) their derivatives
    by p+ and p-, where u p+ + v p- = p+ + p-."""

    rows: tuple[Floats, Floats]
    weights: tuple[float, float]
    slopes: Floats

    @classmethod
    def of(cls, means: Floats, labels: Floats, weight: float | None, least: float) -> Sides:
        """From the means of rows, and of labels times rows; no share counts as less than ``least``."""
        rows = (means + labels) / 2, (means - labels) / 2
        least = min(least, 0.5)
        share = float(np.clip(rows[0][0], least, 1 - least))
        rows[0][0], rows[1][0] = share, 1 - share
        if weight is None:
            weights = 0.5 / share, 0.5 / (1 - share)
            (u, v), parts = weights, (share, 1 - share)
            slopes = [[u - u / parts[0], u], [v, v - v / parts[1]]]
        else:
            total = weight * share + 1 - share
            u, v = weight / total, 1 / total
            slopes = [[u - u * u, u - u * v], [v - u * v, v - v * v]]
        return cls(rows, (u, v), np.array(slopes))

    @property
    def labels(self) -> Floats:
        """(d,) means of labels times rows."""
        (u, v), (positive, negative) = self.weights, self.rows
        return u * positive - v * negative

    def weighted(self, products: Floats) -> Floats:
        """(d, d) mean products."""
        found = products.copy()
        for weight, row in zip(self.weights, self.rows, strict=True):
            found += (weight - 1) / row[0] * np.outer(row, row)
        return found

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Of h at theta, by the means of labels times rows, and by those of rows: (d, d) each."""
        signs, shares = (1.0, -1.0), [float(row[0]) for row in self.rows]
        # h = a+ r+ + a- r-, a = sign weight - (weight - 1) (r.theta) / p
        fitted = [float(row @ theta) / share for row, share in zip(self.rows, shares, strict=True)]
        by_side = []
        for j in range(2):
            found = np.zeros((len(theta), len(theta)))
            for i, row in enumerate(self.rows):
                slope = (signs[i] - fitted[i]) * self.slopes[i, j]
                if i == j:
                    extra = (self.weights[i] - 1) / shares[i]
                    slope += extra * fitted[i]
                    found -= extra * np.outer(row, theta)
                    factor = signs[i] * self.weights[i] - (self.weights[i] - 1) * fitted[i]
                    found += factor * np.eye(len(theta))
                found[:, 0] += slope * row
            by_side.append(found)
        positive, negative = by_side
        return (positive - negative) / 2, (positive + negative) / 2


def ridge(stddev: float, size: int) -> float:
    """What is added to all but the intercept of mean products (size, size), by their noise."""
    return PENALTY * stddev * float(np.sqrt(size))


def fitted(
    products: Floats,
    labels: Floats,
    measured: NDArray[np.bool_],
    stddevs: tuple[float, float],
    weight: float | None,
) -> RidgeFit:
    """From noisy means: of products of rows (d, d), and of labels times rows (d,).

    ``weight``: of the positive side over that of the negative one; None: both sides weigh the same.
    """
    sides = None if weight == 1 else Sides.of(products[0], labels, weight, 2 * stddevs[1])
    weighted = sides.weighted(products) if sides else products
    centres = weighted[0, 1:]
    values, vectors = np.linalg.eigh(weighted[1:, 1:] - np.outer(centres, centres))
    inner = (vectors / (np.maximum(values, 0.0) + ridge(stddevs[0], len(labels)))) @ vectors.T
    inverse = np.zeros_like(products)
    inverse[1:, 1:] = inner
    inverse[0, 1:] = inverse[1:, 0] = -inner @ centres
    inverse[0, 0] = 1.0 - inverse[0, 1:] @ centres
    theta = inverse @ (sides.labels if sides else labels)
    without = np.eye(len(labels)), np.zeros_like(products)
    moved = sides.derivatives(theta) if sides else without
    return RidgeFit(theta, inverse, measured, stddevs, products[0].copy(), moved)
