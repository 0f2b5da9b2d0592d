"""Kernel support vector machine with Gaussian-process noise, evaluable anywhere without the data.

The machine is trained in a public feature space of dimension D that stands for the Gaussian kernel
(``dpcore.machines.features``), without an intercept, on the distinct rows of the tally.  In that
space its weight vector moves by at most kappa/(lambda n) when one record is replaced (Hall, Rinaldo
& Wasserman 2013, Proposition 8, hinge loss), plus what the solver's certified gap allows (METHODS
h).  Isotropic Gaussian noise on the weights is Gaussian-process noise with the kernel as
covariance: the decision function has the same standard error everywhere.

The decision function of x, numbers scaled to [0, 1], is

    f(x) = sum over k of  cos_k cos(<w_k, x>) + sin_k sin(<w_k, x>)

A feature of text categories has one coordinate per category, 1/sqrt(2) for the record's own and 0
for the others, so that two different categories lie at distance 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Axis, Bins, Categories, Grid, Tally
from dpcore.lattice import Lattice
from dpcore.machines.features import KAPPA, FourierFeatures
from dpcore.machines.svm import hinge_sensitivity, train_svm
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.base import ErrorStatement, Published, Release, Table
from dpcore.statistic import Exact, Noisy

Floats = NDArray[np.float64]

LARGEST_AXIS = 2**24
"""The most values that a numeric feature may have."""

MOST_CATEGORIES = 64
"""The most categories of a text feature: each is a dimension of the kernel's space."""


@dataclass(frozen=True)
class Classifier(Release):
    """The last axis of the domain is the label, the others are features.

    ``signs``: +1 or -1 for each code of the label; ``bandwidths``: of the Gaussian kernel, one per
    feature, features scaled to [0, 1]; ``regularisation``: lambda in  mean hinge loss + lambda ||f||^2;
    ``frequencies``: half the dimension of the feature space.
    """

    signs: tuple[int, ...] = ()
    bandwidths: tuple[float, ...] = ()
    regularisation: float = 0.01
    frequencies: int = 256

    def __post_init__(self) -> None:
        for axis in self.domain.axes:
            if axis.nullable:
                raise ValueError(
                    f"features: {axis.name} has nulls, which have no place in a kernel"
                )
        for axis in self.feature_axes:
            scaled_positions(axis)
        if len(self.bandwidths) != len(self.feature_axes):
            raise ValueError("bandwidth: one number, or one for each feature")

    @property
    def feature_axes(self) -> tuple[Axis, ...]:
        return self.domain.axes[:-1]

    @cached_property
    def features(self) -> FourierFeatures:
        """The public feature map."""
        widths = [
            width
            for axis, width in zip(self.feature_axes, self.bandwidths, strict=True)
            for _ in coordinate_names(axis)
        ]
        return FourierFeatures(len(widths), tuple(widths), self.frequencies)

    @cached_property
    def lattice(self) -> Lattice:
        # The solver's tolerance, a public number, is counted in it: about one per cent.
        sensitivity = hinge_sensitivity(self.rows, self.regularisation, KAPPA)
        return Lattice.for_sensitivity(sensitivity, self.features.size, self.rows)

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        return DiscreteGaussian.within(
            self.share, self.features.size, self.lattice.l2_sensitivity_squared
        )

    def statistic(self, tally: Tally) -> Exact:
        codes = tally.domain.unpack(tally.cells)
        labels = np.asarray(self.signs)[codes[:, -1]]
        points = np.column_stack(
            [scaled_positions(axis)[codes[:, i]] for i, axis in enumerate(self.feature_axes)]
        )
        solution = train_svm(
            self.features.transform(points),
            labels,
            tally.counts,
            self.rows,
            self.regularisation,
        )
        return Exact(self.lattice.encode(solution.weights))

    def weights(self, noisy: Noisy) -> Floats:
        """(D,) noisy weights."""
        return self.lattice.decode(noisy.values)

    @property
    def decision_stddev(self) -> float:
        """Standard deviation of the noise in f(x), the same at every x."""
        return self.lattice.step * self.mechanism.stddev

    def decide(self, noisy: Noisy, points: Floats) -> Floats:
        """f at scaled points (k, features)."""
        return np.asarray(self.features.transform(points) @ self.weights(noisy))

    def publish(self, noisy: Noisy) -> Published:
        weights = self.weights(noisy) / np.sqrt(self.frequencies)
        names = [name for axis in self.feature_axes for name in coordinate_names(axis)]
        matrix = self.features.frequencies_matrix()
        table = Table(
            "classifiers",
            self.name,
            {f"w_{name}": matrix[:, i] for i, name in enumerate(names)}
            | {"cos": weights[: self.frequencies], "sin": weights[self.frequencies :]},
            {f"w_{name}": f"Frequency along the coordinate {name}" for name in names}
            | {
                "cos": "Noisy coefficient of the cosine of <w, x>",
                "sin": "Noisy coefficient of the sine of <w, x>",
            },
        )
        facts = {
            "decision": "f(x) = sum of cos * cos(<w, x>) + sin * sin(<w, x>); positive where f > 0",
            "coordinates": {axis.name: _coordinates(axis) for axis in self.feature_axes},
            "label": self.domain.names[-1],
            "positive": _positive(self.domain.axes[-1], self.signs),
            "kernel_bandwidths": dict(
                zip((axis.name for axis in self.feature_axes), self.bandwidths, strict=True)
            ),
            "regularisation": self.regularisation,
            "decision_standard_error": self.decision_stddev,
        }
        return Published((table,), facts)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            ErrorStatement(
                "standard error of a decision value", self.decision_stddev, "the margin is at 1"
            ),
        )


def scaled_positions(axis: Axis) -> Floats:
    """Where each code of an axis lies: (size,) on [0, 1], or (size, size) for text categories.

    Raises ``ValueError`` where a feature cannot be made of the axis.
    """
    if isinstance(axis, Bins):
        raise ValueError(f"features: {axis.name} is binned; a kernel needs its values")
    if axis.size > (LARGEST_AXIS if _ordered(axis) else MOST_CATEGORIES):
        raise ValueError(f"features: {axis.name} has {axis.size:.3g} values, which are too many")
    if isinstance(axis, Grid):
        return (np.arange(axis.size) + 0.5) / axis.size
    if not _ordered(axis):
        return np.asarray(np.eye(axis.size) / np.sqrt(2))
    lower, width = _scaling(axis)
    return np.asarray((np.asarray(axis.categories, dtype=np.float64) - lower) / width)


def coordinate_names(axis: Axis) -> list[str]:
    """The coordinates that a feature has in the kernel's space."""
    if isinstance(axis, Categories) and not _ordered(axis):
        return [f"{axis.name}={category}" for category in axis.categories]
    return [axis.name]


def _ordered(axis: Axis) -> bool:
    return not isinstance(axis, Categories) or all(
        isinstance(c, int | float) and not isinstance(c, bool) for c in axis.categories
    )


def _coordinates(axis: Axis) -> dict[str, object]:
    if _ordered(axis):
        lower, width = _scaling(axis)
        return {"lower": lower, "width": width, "rule": "(value - lower) / width"}
    return {"names": coordinate_names(axis), "rule": "1/sqrt(2) for the category, 0 for others"}


def _scaling(axis: Axis) -> tuple[float, float]:
    """(lower, width): a value v of the column is scaled to (v - lower) / width."""
    if isinstance(axis, Categories):
        values = [float(c) for c in axis.categories]
        return min(values), (max(values) - min(values)) or 1.0
    if axis.integer:  # whole number v sits at the middle of [v, v + 1)
        return axis.lower - 0.5, axis.upper - axis.lower
    return axis.lower, axis.upper - axis.lower


def _positive(axis: Axis, signs: tuple[int, ...]) -> object:
    """What f > 0 stands for: categories, or [from, to] of numbers."""
    codes = [code for code, sign in enumerate(signs) if sign > 0]
    if isinstance(axis, Categories):
        return [axis.categories[code] for code in codes]
    return [[axis.edges[code], axis.edges[code + 1]] for code in codes]
