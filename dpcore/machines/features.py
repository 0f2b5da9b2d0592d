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
    * the first coordinate is an even grid and the others are a Sobol' sequence (a Hammersley set).

Mean error over pairs in the unit cube, h = 0.15, 0.3 and 0.6 averaged (random | these frequencies):

    d      D = 256            D = 512            D = 2048
    1      .0461 | .0006      .0301 | .0003      .0068 | .0001
    2      .0415 | .0056      .0262 | .0030      .0163 | .0008
    3      .0532 | .0144      .0311 | .0090      .0174 | .0023
    4      .0398 | .0242      .0305 | .0153      .0153 | .0047
    6      .0480 | .0355      .0336 | .0229      .0171 | .0098
    8      .0471 | .0411      .0344 | .0280      .0170 | .0129

>>> features = FourierFeatures(dimensions=2, bandwidth=0.3, frequencies=128)
>>> features.transform(np.array([[0.1, 0.2], [0.7, 0.4]])).shape
(2, 256)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Floats

# Bound on ||Phi(x)|| as computed: cosines and sines are off by a few 1e-16, which stays far below.
KAPPA = 1.0 + 1e-12


@dataclass(frozen=True)
class FourierFeatures:
    """The public feature map: the plan chooses everything here; nothing is read from data.

    ``dimensions``: d, columns of a point; ``bandwidth``: h, the standard deviation of the Gaussian
    kernel in units of the scaled points, one for all columns or one per column; ``frequencies``:
    K, so that Phi(x) has D = 2K coordinates.
    """

    dimensions: int
    bandwidth: float | tuple[float, ...]
    frequencies: int

    @property
    def size(self) -> int:
        """D, the number of coordinates of Phi(x)."""
        return 2 * self.frequencies

    def bandwidths(self) -> tuple[float, ...]:
        """One bandwidth per dimension."""
        if isinstance(self.bandwidth, tuple):
            return self.bandwidth
        return (self.bandwidth,) * self.dimensions

    def frequencies_matrix(self) -> Floats:
        """The frequencies w_k: (K, d), deterministic.

        Row k is the normal quantile of point k of a Hammersley set: an even grid on (1/2, 1),
        beside the unscrambled Sobol' sequence moved to the middles of its dyadic cells, which keeps
        it away from 0 and 1, where the quantile is infinite.
        """
        from scipy.special import ndtri  # slow to import, and a plan is explained without

        count = self.frequencies
        uniforms = np.empty((count, self.dimensions))
        uniforms[:, 0] = 0.5 + (np.arange(count) + 0.5) / (2 * count)
        if self.dimensions > 1:
            log_cells = (count - 1).bit_length()
            from scipy.stats import qmc

            sobol = qmc.Sobol(self.dimensions - 1, scramble=False).random_base2(log_cells)
            uniforms[:, 1:] = sobol[:count] + 0.5 / 2**log_cells
        return np.asarray(ndtri(uniforms) / np.array(self.bandwidths()))

    def transform(self, points: Floats) -> Floats:
        """Phi at each point: ``points`` (k, d) to (k, D), each row of norm at most ``KAPPA``.

        A row depends on its own point alone, to the last bit.  Otherwise one person's record could
        change the features of everybody else, which the sensitivity does not count.  Neither a matrix
        product nor a cosine of many rows at once promises this: both may round by where a number is
        in an array.  So every row goes through the same steps in the same four arrays, alone.
        """
        points = np.asarray(points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.dimensions:
            raise ValueError(f"points must have shape (k, {self.dimensions}), not {points.shape}")
        columns = np.ascontiguousarray(self.frequencies_matrix().T)
        phases, term, cosines, sines = np.empty((4, self.frequencies))
        features = np.empty((len(points), 2, self.frequencies))
        for row, point in zip(features, points.tolist(), strict=True):
            phases.fill(0.0)
            for coordinate, column in zip(point, columns, strict=True):
                np.multiply(column, coordinate, out=term)
                np.add(phases, term, out=phases)
            row[0] = np.cos(phases, out=cosines)
            row[1] = np.sin(phases, out=sines)
        features /= math.sqrt(self.frequencies)  # a division is rounded correctly, wherever it is
        return features.reshape(len(points), self.size)
