"""Chooses the number of functions of a density with K-norm noise (gamma mechanism or body)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.left_out import ApproximationBounds
from dpcore.releases.densities.splines import SMALL

B = TypeVar("B", bound=Basis)


def least_left_out(bases: Sequence[B], most: int, noise: Callable[[B], float]) -> B:
    """The best of the bases with at most ``most`` functions, or the first; public.

    The bound on the truncation error has ``SMALL`` times the weight of the noise.
    """

    def whole(basis: B) -> float:
        return math.hypot(noise(basis), SMALL * ApproximationBounds(basis, 0.0, ()).truncation)

    return min((b for b in bases if b.size <= most), key=whole, default=bases[0])
