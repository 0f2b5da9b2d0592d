"""How far a density without noise may be from the exact kernel estimate: bounds for any table.

The exact estimate is f(x) = mean over records y of k(x, y), with k the kernel of the basis, reflected or
wrapped around.  A release without noise differs from it by three errors, relative to a uniform density
of the same mass:

    truncation   functions that the basis leaves out, of damping lambda: a record contributes at most the
                 sum of 2^(axes that vary) lambda over them, attained by records in one corner
    binning      records counted in cells (``splines``): a public factor for each function
    rounding     continuous values are moved to the middle of a cell of the column's grid

**Rounding.**  Let phi_h be a Gaussian density of deviation h.  A record moves by at most u h along an
axis.  In units of h, with s = t - v,

    |d/dv phi_h(t - v)| / phi_(h sqrt 2)(t) = sqrt 2 |s| exp(-s^2/4 + s v/2 + v^2/4),

which is largest at v = u h, s = (u + sqrt(u^2 + 8))/2.  So for all t

    |phi_h(t - v) - phi_h(t)| <= C phi_(h sqrt 2)(t),       C = u sqrt 2 s exp(-s^2/4 + s u/2 + u^2/4),

for every image of a record, and over several axes

    |f(x) - f rounded(x)| <= mean of [prod (k_i + C_i k_i at bandwidth h_i sqrt 2) - prod k_i].

The right hand side is linear in the records: a function whose coefficients are f's times prod (1 + C_i
lambda_i) - 1, because lambda at h sqrt 2 is lambda squared.  It is therefore estimated from the released
coefficients themselves, and where the released function is nowhere farther than e from the exact one,
the estimate is nowhere farther than (prod (1 + C_i) - 1) e from the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.axes import Grid
from dpcore.releases.densities.basis import Basis

PARTS = ("binning", "rounding", "truncation")


@dataclass(frozen=True)
class ApproximationBounds:
    """Bounds of approximation errors; ``basis``: the functions kept; ``binning``: a public bound;
    ``moves``: how far, in bandwidths, a record may be moved along each axis before it is counted."""

    basis: Basis
    binning: float
    moves: tuple[float, ...]

    @property
    def truncation(self) -> float:
        """The highest value of the kernel, minus the part of it from the kept functions."""
        highest, _ = self.basis.extremes
        return max(highest - self.basis.longest - self.basis.known, 0.0)

    @property
    def fixed(self) -> float:
        """The bound of truncation and binning together."""
        return self.truncation + self.binning

    @cached_property
    def _widened(self) -> list[float]:
        return [widened(move) for move in self.moves]

    @property
    def moved(self) -> float:
        """The bound of rounding for a uniform density: prod (1 + C_i) - 1."""
        return math.prod(1 + c for c in self._widened) - 1

    @cached_property
    def weights(self) -> Floats:
        """The factors (coefficients,) prod (1 + C_i lambda_i) - 1 from a density to its bound."""
        lines = [1 + c * line for c, line in zip(self._widened, self.basis.lines, strict=True)]
        return np.asarray(reduce(np.multiply.outer, lines, np.ones(()))[self.basis.kept] - 1)

    def bound(self, moved: Floats, error: float) -> Floats:
        """The bound of all errors for a density of mass one, at points (k,).

        ``moved``: the density with coefficients times ``weights``.  It is the bound of rounding up to
        the error of the released function, which is at most ``error`` everywhere.
        """
        highest, _ = self.basis.extremes
        rounding = np.maximum(moved, 0) + self.moved * (error + self.fixed)
        return np.asarray(np.minimum(self.fixed + rounding, max(highest, self.fixed)))

    @property
    def parts(self) -> Mapping[str, float]:
        """The bound of each error for a uniform density."""
        return dict(zip(PARTS, (self.binning, self.moved, self.truncation), strict=True))


def half_cells(axes: Sequence[Grid], bandwidths: Sequence[float]) -> tuple[float, ...]:
    """The most, in bandwidths, by which the columns' own grids move a record; 0 for whole numbers."""
    return tuple(
        0.0 if axis.integer else 0.5 / axis.cells / h
        for axis, h in zip(axes, bandwidths, strict=True)
    )


def widened(move: float) -> float:
    """The constant C of the module's theorem; useless for moves beyond twenty bandwidths."""
    u = min(move, 20.0)
    s = (u + math.sqrt(u * u + 8)) / 2
    return u * math.sqrt(2) * s * math.exp(-s * s / 4 + s * u / 2 + u * u / 4)
