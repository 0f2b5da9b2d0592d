"""The score of a mechanism of two rounds whose second is about groups that the first one suggests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.audit.scores import Floats, Outputs, stated_ratio
from dpcore.domain import Tally
from dpcore.mechanisms import CompressedMargins
from dpcore.mechanisms.adaptive_margins import Integers, Noise


@dataclass(frozen=True, eq=False)
class CompressedRatio:
    """log of how much likelier an output is for the table ``near`` than for ``far``, both made up.

    Given the groups, which the output itself tells, both rounds are noise of the stated law.
    """

    mechanism: CompressedMargins
    near: Tally
    far: Tally

    def __call__(self, outputs: Outputs) -> Floats:
        of = self.mechanism
        once, twice = np.split(outputs.astype(np.int64), [of.first.size], axis=1)
        result = _ratio(of.first, of.alone(self.near), of.alone(self.far), once)
        for groups, rows in of.by_groups(once):
            near, far = (of.together(side, groups) for side in (self.near, self.far))
            result[rows] += _ratio(of.again, near, far, twice[rows])
        return np.round(result, 9)

    def __str__(self) -> str:
        return "log-ratio of the stated noise of both rounds"


def _ratio(noise: Noise, near: Integers, far: Integers, outputs: Outputs) -> Floats:
    (score,) = stated_ratio(noise.event, near.astype(np.float64), far.astype(np.float64))
    return score(outputs)
