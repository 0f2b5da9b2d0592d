"""Declared transforms of a column: its density is estimated on another scale, then transformed back.

A transform t is public, increasing and acts on each record alone, so a release of the records t(x) has
the sensitivity of a release of the records x.  Statements about g, the density of t(x), hold for

    f(x) = g(t(x)) t'(x),

the density of x, with everything multiplied by the same public t'(x) >= 0: the estimate, its error, the
bounds of what is left out and both ends of an interval.  A band that holds g at all points at once
therefore holds f at all of them, with the same probability.  The kernel of f at x is as wide as h/t'(x):
with log, in proportion to x.

>>> TRANSFORMS["log"].slope(np.array([0.5, 4.0])).tolist()
[2.0, 0.25]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpcore.arrays import Floats

TransformName = Literal["none", "log", "sqrt", "log1p"]


@dataclass(frozen=True)
class Transform:
    """A transform; ``forward``: t; ``backward``: its inverse; ``slope``: t'; each acts on (k,) numbers.

    ``valid``: whether t is defined from a lower bound on; ``needs``: the allowed lower bounds, in
    words.
    """

    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    valid: Callable[[float], bool]
    needs: str


def _itself(x: Floats) -> Floats:
    return x


TRANSFORMS: Mapping[TransformName, Transform] = {
    "none": Transform(_itself, _itself, np.ones_like, lambda lower: True, ""),
    "log": Transform(
        np.log,
        np.exp,
        lambda x: 1 / x,
        lambda lower: lower > 0,
        "a lower bound above 0; raise it, or use log1p",
    ),
    "sqrt": Transform(
        np.sqrt,
        np.square,
        lambda x: 0.5 / np.sqrt(x),
        lambda lower: lower >= 0,
        "a lower bound of 0 or more; raise it",
    ),
    "log1p": Transform(
        np.log1p,
        np.expm1,
        lambda x: 1 / (1 + x),
        lambda lower: lower > -1,
        "a lower bound above -1; raise it",
    ),
}
