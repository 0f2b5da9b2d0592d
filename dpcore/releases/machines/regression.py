"""Kernel regression of a bounded number (``dpcore.releases.machines.machine``).

The target is scaled to its public bounds and centred there, so that f = 0 is the middle of its range
and no intercept is needed.  Huber's loss is linear for large residuals, which bounds the influence of
one record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.line.statistic import Noisy
from dpcore.machines.losses import Huber, Loss
from dpcore.releases.base import ErrorStatement
from dpcore.releases.machines.features import scaled_positions, scaling
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.table import normal_interval


@dataclass(frozen=True)
class Regression(KernelMachine):
    """A kernel regression; ``threshold``: the residual beyond which Huber's loss is linear, in units of
    the target's range; it is also the largest slope."""

    threshold: float = 0.1

    def __post_init__(self) -> None:
        target = self.domain.axes[-1]
        if target.nullable:
            raise ValueError(f"target: {target.name} may be null; choose a column without nulls")
        if scaled_positions(target).ndim > 1:
            raise ValueError(f"target: {target.name} must be a column of numbers")
        super().__post_init__()

    @property
    def loss(self) -> Loss:
        return Huber(self.threshold)

    @property
    def targets(self) -> Floats:
        return scaled_positions(self.domain.axes[-1]) - 0.5

    @property
    def folder(self) -> str:
        return "regressions"

    @property
    def _scaling(self) -> tuple[float, float]:
        return scaling(self.domain.axes[-1])

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """``prediction`` at points, in units of the target, with its interval."""
        prediction = self.outputs(self.at(noisy, points))
        return {"prediction": prediction, **normal_interval(prediction, self.output_stddev)}

    @property
    def output(self) -> str:
        return f"prediction of {self.domain.names[-1]}"

    def outputs(self, f: Floats) -> Floats:
        lower, width = self._scaling
        return np.asarray(lower + width * (f + 0.5))

    @property
    def output_stddev(self) -> float:
        return self.decision_stddev * self._scaling[1]

    def facts(self) -> dict[str, object]:
        lower, width = self._scaling
        return {
            "prediction": "lower + width * (f(x) + 1/2) with"
            " f(x) = sum of cos * cos(<w, x>) + sin * sin(<w, x>)",
            "target": {"name": self.domain.names[-1], "lower": lower, "width": width},
            "threshold": self.threshold * width,
            "prediction_standard_error": self.output_stddev,
        }

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        target = f"standard error of a prediction, in units of {self.domain.names[-1]}"
        return (ErrorStatement(target, self.output_stddev, "privacy noise alone"),)
