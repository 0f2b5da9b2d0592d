"""What a machine may minimise: losses that are convex and of bounded slope in the decision value.

    minimise    (1/n) sum_i c_i loss(<w, Phi_i>, y_i) + lambda ||w||^2

A slope of at most M gives the weights the sensitivity M kappa / (lambda n) when a record is
replaced, and half of it when one comes or goes, whatever else the loss is (Hall, Rinaldo &
Wasserman 2013, Proposition 8; ``svm.weight_sensitivity``).

    loss                  of u, for label or target y                        M     solver
    hinge                 max(0, 1 - y u)                                    1     interior point
    logistic              log(1 + exp(-y u))                                 1     Newton
    epsilon-insensitive   max(0, |u - y| - epsilon)                          1     interior point
    huber                 (u - y)^2 / 2, and linear from |u - y| = delta on  delta Newton

Labels are +-1, targets lie in [-1, 1].  Squared loss has no bounded slope and is not offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpcore.machines import newton
from dpcore.machines.interior_point import Problem, Reals
from dpcore.machines.svm import (
    Solution,
    checked_problem,
    public_tolerance,
    solve,
    train_svm,
)


class Loss(Protocol):
    """A loss with its solver."""

    name: ClassVar[str]

    @property
    def slope(self) -> float:
        """M, the Lipschitz constant in the decision value."""
        ...

    def value(self, responses: Reals, targets: Reals) -> Reals:
        """The loss of decision values, elementwise."""
        ...

    def train(
        self,
        features: Reals,
        targets: Reals,
        weights: NDArray[np.generic],
        rows: int,
        regularisation: float,
        gap: float | None = None,
    ) -> Solution:
        """The minimiser, to within the public tolerance ``gap``; arguments as of ``train_svm``.

        Postcondition, for every data set: ||w - w*|| <= sqrt(gap / (2 lambda)), certified.
        """
        ...


@dataclass(frozen=True)
class Hinge:
    """The support vector machine."""

    name: ClassVar[str] = "hinge"
    slope: ClassVar[float] = 1.0

    def value(self, responses: Reals, targets: Reals) -> Reals:
        return np.maximum(0.0, 1.0 - targets * responses)

    def train(
        self,
        features: Reals,
        targets: Reals,
        weights: NDArray[np.generic],
        rows: int,
        regularisation: float,
        gap: float | None = None,
    ) -> Solution:
        return train_svm(features, targets, weights, rows, regularisation, gap)


@dataclass(frozen=True)
class EpsilonInsensitive:
    """Support vector regression: two hinges for each row, one from above and one from below.

    With y' = y - epsilon and labels +1 for "at least", y' = -y - epsilon and -1 for "at most".
    """

    epsilon: float

    name: ClassVar[str] = "epsilon-insensitive"
    slope: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _require_threshold("epsilon", self.epsilon)

    def value(self, responses: Reals, targets: Reals) -> Reals:
        return np.maximum(0.0, np.abs(responses - targets) - self.epsilon)

    def train(
        self,
        features: Reals,
        targets: Reals,
        weights: NDArray[np.generic],
        rows: int,
        regularisation: float,
        gap: float | None = None,
    ) -> Solution:
        tolerance = public_tolerance(rows, regularisation, gap)
        one = checked_problem(features, _targets(targets), weights, rows, regularisation)
        both = Problem(
            np.concatenate([one.features, one.features]),
            np.repeat([1.0, -1.0], len(one.shares)),
            np.concatenate([one.shares, one.shares]),
            regularisation,
            np.concatenate([one.labels, -one.labels]) - self.epsilon,
        )
        return solve(both, tolerance)


@dataclass(frozen=True)
class Logistic:
    """Logistic regression."""

    name: ClassVar[str] = "logistic"
    slope: ClassVar[float] = 1.0
    curving: ClassVar[float] = 0.25

    def value(self, responses: Reals, targets: Reals) -> Reals:
        return np.logaddexp(0.0, -targets * responses)

    def slopes(self, responses: Reals, targets: Reals) -> Reals:
        return np.asarray(-targets * expit(-targets * responses))

    def curvatures(self, responses: Reals, targets: Reals) -> Reals:
        return np.asarray(expit(responses) * expit(-responses))

    def train(
        self,
        features: Reals,
        targets: Reals,
        weights: NDArray[np.generic],
        rows: int,
        regularisation: float,
        gap: float | None = None,
    ) -> Solution:
        labels = np.asarray(targets, dtype=np.float64)
        if not np.all(np.abs(labels) == 1.0):
            raise ValueError("labels must be +1 or -1")
        tolerance = public_tolerance(rows, regularisation, gap, self.slope)
        problem = checked_problem(features, labels, weights, rows, regularisation)
        return newton.solve(self, problem, tolerance)


@dataclass(frozen=True)
class Huber:
    """Least squares for small residuals, least absolute deviations for large ones."""

    delta: float

    name: ClassVar[str] = "huber"
    curving: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _require_threshold("delta", self.delta)

    @property
    def slope(self) -> float:
        return self.delta

    def value(self, responses: Reals, targets: Reals) -> Reals:
        away = np.abs(responses - targets)
        inside = np.minimum(away, self.delta)
        return np.asarray(inside * (away - inside / 2))

    def slopes(self, responses: Reals, targets: Reals) -> Reals:
        return np.clip(responses - targets, -self.delta, self.delta)

    def curvatures(self, responses: Reals, targets: Reals) -> Reals:
        return np.asarray(np.abs(responses - targets) <= self.delta, dtype=np.float64)

    def train(
        self,
        features: Reals,
        targets: Reals,
        weights: NDArray[np.generic],
        rows: int,
        regularisation: float,
        gap: float | None = None,
    ) -> Solution:
        tolerance = public_tolerance(rows, regularisation, gap, self.slope)
        problem = checked_problem(features, _targets(targets), weights, rows, regularisation)
        return newton.solve(self, problem, tolerance)


def _targets(values: Reals) -> Reals:
    targets = np.asarray(values, dtype=np.float64)
    if not np.all(np.abs(targets) <= 1.0):
        raise ValueError("targets must lie between -1 and 1")
    return targets


def _require_threshold(name: str, value: float) -> None:
    if not 0.001 <= value <= 1.0:
        raise ValueError(f"{name} must lie between 0.001 and 1, not {value!r}")
