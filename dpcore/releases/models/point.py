"""The point at which a round of a model measures, and what its errors need of the rounds before it.

Everything here is public, because it follows from noisy numbers.  The symbols are those of ``rounds``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpcore.arrays import Booleans, Floats


@dataclass(frozen=True, eq=False)
class Repetitions:
    """Arrays with one entry for each of t repetitions of a draw."""

    def select(self, some: slice) -> Self:
        """Select some of the repetitions."""
        found = {
            name: each.select(some) if isinstance(each, Repetitions) else each[some]
            for name, each in vars(self).items()
            if not isinstance(each, int)
        }
        return replace(self, **found)


@dataclass(frozen=True, eq=False)
class Coordinates(Repetitions):
    """Coordinates in which most values lie, for the moments.

    The moments take the response relative to ``location`` and ``width``: (t,), and the terms x as
    (x - ``middle``) ``local``: (t, p) and (t, p, p), which mixes only functions of one column.
    """

    location: Floats
    width: Floats
    middle: Floats
    local: Floats


@dataclass(frozen=True, eq=False)
class NewtonStep(Repetitions):
    """A Newton step, in the basis of ``white``.

    ``inverse``: (t, p, p) of the noisy curvature over ``slope``; ``blur``: (t,) the noise in it;
    ``aimed``: (t, p) the full step; ``heard``: (t,) the noise in the scores; ``moved``: (t, p) the step
    that was made, without the part that noise explains.
    """

    inverse: Floats
    blur: Floats
    aimed: Floats
    heard: Floats
    moved: Floats


@dataclass(frozen=True, eq=False)
class Doubts(Repetitions):
    """What the errors of the estimate need besides the last step.

    ``unsure``: (t, p) the fraction of the information on each of the formula's coefficients that may be
    noise in the moments; ``meat``: (t, p, p) the variance of the sum of scores; ``tail``: (t,) the
    approximate bias from cutting at C in one direction; ``trusted``: (t,) the weight of the last step
    relative to the middle round; ``flat``: (t, p) the curvature of each term at the end over that of
    ``inverse``; ``astray``: (t, p) whether a coefficient has not converged.
    """

    unsure: Floats
    meat: Floats
    tail: Floats
    trusted: Floats
    flat: Floats
    astray: Booleans


@dataclass(frozen=True, eq=False)
class ScorePoint(Repetitions):
    """The point at which a round measures, in each of t repetitions.

    ``theta``: (t, p); ``white``: (t, p, p) V'; ``spread``: (t,) of residuals, squared; ``slope``: (t,) a
    typical one; ``radius``: (t,) C; ``squeeze``: (t, p, p) Q'; ``rows``: (t,) about how many records
    there are, by weight; ``last``: the step that led here.
    """

    number: int
    theta: Floats
    white: Floats
    spread: Floats
    slope: Floats
    radius: Floats
    squeeze: Floats
    rows: Floats
    near: Coordinates
    last: NewtonStep
    doubts: Doubts

    @property
    def unit(self) -> Floats:
        """The change (t,) of a linear predictor for a step of 1 in the basis of ``white``."""
        return np.asarray(np.sqrt(self.spread) / self.slope)
