"""The losses of a kernel machine: convex, and of bounded slope in the decision value.

    minimise    (1/n) sum_i c_i loss(<w, Phi_i>, y_i) + lambda ||w||^2

If the slope is at most M, the weights have the sensitivity M kappa / (lambda n) when a record is
replaced, and half of it when one is added or removed, whatever else the loss is (Hall, Rinaldo &
Wasserman 2013, Proposition 8; ``svm.weight_sensitivity``).

    loss                  of u, for label or target y                        M     solver
    hinge                 max(0, 1 - y u)                                    1     interior point
    logistic              log(1 + exp(-y u))                                 1     Newton
    epsilon-insensitive   max(0, |u - y| - epsilon)                          1     interior point
    huber                 (u - y)^2 / 2, and linear from |u - y| = delta on  delta Newton

Labels are +-1, targets lie in [-1, 1].  Squared loss has no bounded slope and is not offered.

>>> features = np.array([[1.0, 0.0], [0.6, 0.8]])
>>> solution = Hinge().train(features, np.array([1, -1]), np.array([3, 2]), 5, regularisation=0.25)
>>> [round(value, 3) for value in solution.weights.tolist()]
[0.72, -0.64]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpcore.arrays import Floats
from dpcore.machines import newton
from dpcore.machines.interior_point import Problem
from dpcore.machines.svm import Solution, checked_problem, public_tolerance, solve


class Loss(ABC):
    """A loss with its solver; ``classifies``: targets are labels of +-1, not numbers in [-1, 1]."""

    name: ClassVar[str]
    classifies: ClassVar[bool]

    @property
    def slope(self) -> float:
        """M, the Lipschitz constant in the decision value."""
        return 1.0

    @abstractmethod
    def value(self, responses: Floats, targets: Floats) -> Floats:
        """The loss of decision values, elementwise."""

    def train(
        self,
        features: Floats,
        targets: NDArray[np.generic],
        weights: NDArray[np.generic],
        rows: int,
        regularisation: float,
        gap: float | None = None,
    ) -> Solution:
        """The minimiser w*, to within the public tolerance ``gap`` (``default_gap`` if None).

        ``features``: (N, D) Phi of the distinct rows, of norm at most kappa (about 1); ``targets``:
        (N,) labels of +-1, or numbers in [-1, 1]; ``weights``: (N,) counts c_i, of which zeros are
        ignored; ``rows``: n, public.  N = 0 gives w = 0.

        Postcondition, for every data set: the certified gap is at most the tolerance, so
        ||w - w*|| <= sqrt(gap / (2 lambda)).  Solvers run until it is, because giving up would depend
        on the data; a tolerance that float64 may not reach is refused beforehand, on public grounds.
        Both objectives are those of the features as given, and the row of one record must not depend on
        the other records.
        """
        tolerance = public_tolerance(rows, regularisation, gap, self.slope)
        checked, size = np.asarray(targets, dtype=np.float64), np.abs(targets)
        if self.classifies and not np.all(size == 1.0):
            raise ValueError("labels must be +1 or -1")
        if not np.all(size <= 1.0):
            raise ValueError("targets must lie between -1 and 1")
        problem = checked_problem(features, checked, weights, rows, regularisation)
        return self._solve(problem, tolerance)

    @abstractmethod
    def _solve(self, problem: Problem, tolerance: float) -> Solution:
        """The minimiser for the targets ``problem.labels``, to a certified gap of ``tolerance``."""


@dataclass(frozen=True)
class Hinge(Loss):
    """The support vector machine."""

    name: ClassVar[str] = "hinge"
    classifies: ClassVar[bool] = True

    def value(self, responses: Floats, targets: Floats) -> Floats:
        return np.maximum(0.0, 1.0 - targets * responses)

    def _solve(self, problem: Problem, tolerance: float) -> Solution:
        return solve(problem, tolerance)


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """Support vector regression: two hinges for each row, one from above and one from below.

    With y' = y - epsilon and labels +1 for "at least", y' = -y - epsilon and -1 for "at most".
    """

    epsilon: float

    name: ClassVar[str] = "epsilon-insensitive"
    classifies: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _require_threshold("epsilon", self.epsilon)

    def value(self, responses: Floats, targets: Floats) -> Floats:
        return np.maximum(0.0, np.abs(responses - targets) - self.epsilon)

    def _solve(self, problem: Problem, tolerance: float) -> Solution:
        both = Problem(
            np.concatenate([problem.features, problem.features]),
            np.repeat([1.0, -1.0], len(problem.shares)),
            np.concatenate([problem.shares, problem.shares]),
            problem.regularisation,
            np.concatenate([problem.labels, -problem.labels]) - self.epsilon,
        )
        return solve(both, tolerance)


@dataclass(frozen=True)
class Logistic(Loss):
    """Logistic regression."""

    name: ClassVar[str] = "logistic"
    classifies: ClassVar[bool] = True
    curving: ClassVar[float] = 0.25

    def value(self, responses: Floats, targets: Floats) -> Floats:
        return np.logaddexp(0.0, -targets * responses)

    def slopes(self, responses: Floats, targets: Floats) -> Floats:
        return np.asarray(-targets * expit(-targets * responses))

    def curvatures(self, responses: Floats, targets: Floats) -> Floats:
        return np.asarray(expit(responses) * expit(-responses))

    def _solve(self, problem: Problem, tolerance: float) -> Solution:
        return newton.solve(self, problem, tolerance)


@dataclass(frozen=True)
class Huber(Loss):
    """Least squares for small residuals, least absolute deviations for large ones."""

    delta: float

    name: ClassVar[str] = "huber"
    classifies: ClassVar[bool] = False
    curving: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _require_threshold("delta", self.delta)

    @property
    def slope(self) -> float:
        return self.delta

    def value(self, responses: Floats, targets: Floats) -> Floats:
        away = np.abs(responses - targets)
        inside = np.minimum(away, self.delta)
        return np.asarray(inside * (away - inside / 2))

    def slopes(self, responses: Floats, targets: Floats) -> Floats:
        return np.clip(responses - targets, -self.delta, self.delta)

    def curvatures(self, responses: Floats, targets: Floats) -> Floats:
        return np.asarray(np.abs(responses - targets) <= self.delta, dtype=np.float64)

    def _solve(self, problem: Problem, tolerance: float) -> Solution:
        return newton.solve(self, problem, tolerance)


def _require_threshold(name: str, value: float) -> None:
    if not 0.001 <= value <= 1.0:
        raise ValueError(f"{name} must lie between 0.001 and 1, not {value!r}")
