"""Kernel classifier: a support vector machine or logistic regression (``machine``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis, Categories
from dpcore.line.statistic import Noisy
from dpcore.machines.losses import Hinge, Logistic, Loss
from dpcore.releases.base import ErrorStatement
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.table import normal_interval

LossName = Literal["hinge", "logistic"]


@dataclass(frozen=True)
class Classifier(KernelMachine):
    """A kernel classifier; ``signs``: +1 or -1 for each code of the label, the last axis;
    ``loss_name``: hinge, or logistic, with which 1/(1 + exp(-f)) estimates the probability of a
    positive label."""

    signs: tuple[int, ...] = ()
    loss_name: LossName = "hinge"

    boundary = 0.0

    def __post_init__(self) -> None:
        require_answers(self.domain.axes[-1])
        super().__post_init__()

    @property
    def loss(self) -> Loss:
        return Hinge() if self.loss_name == "hinge" else Logistic()

    @property
    def targets(self) -> Floats:
        return np.asarray(self.signs, dtype=np.float64)

    @property
    def folder(self) -> str:
        return "classifiers"

    @property
    def output(self) -> str:
        return "decision value"

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """``decision`` at points, with its interval and ``sign_error``."""
        return decided(self.at(noisy, points), self.decision_stddev)

    def facts(self) -> dict[str, object]:
        return {
            "decision": "f(x) = sum of cos * cos(<w, x>) + sin * sin(<w, x>); positive where f > 0",
            "label": self.domain.names[-1],
            "positive": positive_side(self.domain.axes[-1], self.signs),
            "decision_standard_error": self.decision_stddev,
            "decision_errors": "The noise in f is a Gaussian process: at each x, the interval f plus or"
            " minus 1.645 standard errors contains f without noise in 90% of releases, and the noise"
            " exceeds |f| in its direction with probability Phi(-|f| / standard error).",
        }

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        scale = "the margin is at 1" if self.loss_name == "hinge" else "f is a log-odds"
        return (ErrorStatement("standard error of a decision value", self.decision_stddev, scale),)


def decided(decision: Floats, error: Floats | float) -> dict[str, Floats]:
    """Columns (k,) of decision values with these standard errors (one or (k,)).

    ``sign_error`` is the probability that noise alone has the sign of the decision value and at least
    its size: 0.5 on the boundary, near 0 far from it.
    """
    from scipy.special import ndtr  # slow to import

    turned = np.asarray(ndtr(-np.abs(decision) / error))
    return {"decision": decision, **normal_interval(decision, error), "sign_error": turned}


def require_answers(label: Axis) -> None:
    """Raise ``ValueError`` if a label may be null."""
    if label.nullable:
        raise ValueError(
            f"label.column: {label.name} may be null, which is neither positive nor negative; choose a"
            " column without nulls"
        )


def positive_side(axis: Axis, signs: tuple[int, ...]) -> object:
    """The labels for which f > 0: categories, or [from, to] for numbers."""
    codes = [code for code, sign in enumerate(signs) if sign > 0]
    if isinstance(axis, Categories):
        return [axis.categories[code] for code in codes]
    return [[axis.edges[code], axis.edges[code + 1]] for code in codes]
