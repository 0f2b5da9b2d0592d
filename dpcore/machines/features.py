"""A public, finite feature map for the Gaussian kernel.

A kernel machine lives in an infinite-dimensional space; a release needs a finite one.  So the Gaussian
kernel exp(-||x - y||^2 / (2 h^2)) is *replaced*, once and publicly, by the kernel of the map

    Phi(x) = (cos(w_1.x), ..., cos(w_K.x), sin(w_1.x), ..., sin(w_K.x)) / sqrt(K)   in R^D, D = 2K

(Rahimi & Recht 2007, Algorithm 1), whose frequencies w_k spread over the law N(0, I / h^2).  The
machine is trained exactly in R^D, so the approximation costs no privacy: ||Phi(x)|| = 1 for every x
because cos^2 + sin^2 = 1, whatever the frequencies are.  It only changes the shape of the kernel a
little, by the errors in the table below.

The frequencies are a fixed low-discrepancy set mapped through the normal quantile ("quasi-Monte
Carlo features", Avron et al. 2016), not random: no seed, the same numbers on every machine up to
rounding, and a smaller error than random ones in low dimensions.  Two ideas make the set good:

    * cos and sin give w and -w the same kernel, so the first coordinate covers a half line only;
    * the first coordinate is an even grid, and coordinate j > 1 of point k the fractional part of
      1/2 + k / g^(j-1), where g^d = g + 1, as in the golden section (Roberts 2018).

Mean error over pairs in the unit cube, h = 0.15, 0.3 and 0.6 averaged (random | these frequencies):

    d      D = 256            D = 512            D = 2048
    1      .0270 | .0006      .0162 | .0003      .0106 | .0001
    2      .0346 | .0049      .0246 | .0020      .0120 | .0006
    3      .0423 | .0126      .0307 | .0085      .0157 | .0024
    4      .0453 | .0210      .0311 | .0128      .0159 | .0054
    6      .0479 | .0343      .0334 | .0226      .0171 | .0110
    8      .0490 | .0415      .0344 | .0287      .0174 | .0128

>>> features = FourierFeatures(bandwidths=(0.3, 0.3), frequencies=128)
>>> features.transform(np.array([[0.1, 0.2], [0.7, 0.4]])).shape
(2, 256)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Floats

# Bound on the computed ||Phi(x)||: cosines and sines have errors of a few 1e-16, far below the margin.
KAPPA = 1.0 + 1e-12

ROOT_STEPS = 40
"""Fixed-point steps for g; each divides the error of g by at least three."""


@dataclass(frozen=True)
class FourierFeatures:
    """The public feature map: the plan chooses everything here; nothing is read from data.

    ``bandwidths``: h, the standard deviation of the Gaussian kernel along each of d columns, in units
    of the scaled points; ``frequencies``: K, so that Phi(x) has D = 2K coordinates.
    """

    bandwidths: tuple[float, ...]
    frequencies: int

    @property
    def size(self) -> int:
        """The number of coordinates of Phi(x), D."""
        return 2 * self.frequencies

    def frequencies_matrix(self) -> Floats:
        """The frequencies w_k: (K, d), deterministic.

        Row k is the normal quantile of point k of the set above.  As powers of g are irrational, no
        coordinate is 0 or 1, where the quantile is infinite.
        """
        from scipy.special import ndtri  # slow to import; explaining a plan does without

        count, dimensions, ratio = self.frequencies, len(self.bandwidths), 2.0
        for _ in range(ROOT_STEPS):
            ratio = (1 + ratio) ** (1 / dimensions)
        uniforms = np.empty((count, dimensions))
        uniforms[:, 0] = 0.5 + (np.arange(count) + 0.5) / (2 * count)
        steps = ratio ** -np.arange(1.0, dimensions)
        uniforms[:, 1:] = (0.5 + np.arange(1, count + 1)[:, None] * steps) % 1
        return np.asarray(ndtri(uniforms) / np.array(self.bandwidths))

    def transform(self, points: Floats) -> Floats:
        """Phi at each point: ``points`` (k, d) to (k, D), each row of norm at most ``KAPPA``.

        A row depends on its own point alone, to the last bit.  Otherwise one person's record could
        change the features of everybody else, which the sensitivity does not count.
        """
        columns = np.ascontiguousarray(self.frequencies_matrix().T)
        # Rounding in a matrix product, or in a cosine of many rows at once, may depend on a number's
        # position.  So each row goes through the same steps alone, in the same four arrays.
        phases, term, cosines, sines = np.empty((4, self.frequencies))
        features = np.empty((len(points), 2, self.frequencies))
        for row, point in zip(features, points.tolist(), strict=True):
            phases.fill(0.0)
            for coordinate, column in zip(point, columns, strict=True):
                np.multiply(column, coordinate, out=term)
                np.add(phases, term, out=phases)
            row[0] = np.cos(phases, out=cosines)
            row[1] = np.sin(phases, out=sines)
        features /= math.sqrt(self.frequencies)  # rounded correctly at any position
        return features.reshape(len(points), self.size)
