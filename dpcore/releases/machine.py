"""Kernel machines with Gaussian-process noise, evaluable anywhere without the data.

A machine is trained in a public feature space of dimension D that stands for the Gaussian kernel
(``dpcore.machines.features``), without an intercept, on the distinct rows of the tally.  In that
space its weight vector moves by at most M kappa/(lambda n) when one record is replaced, M being the
largest slope of the loss (Hall, Rinaldo & Wasserman 2013, Proposition 8), and by half of that when
one is added or removed, plus what the solver's certified gap allows (METHODS h).  Isotropic
Gaussian noise on the weights is Gaussian-process noise with the kernel as covariance: the function
has the same standard error everywhere.

What is minimised is the sum of losses + lambda n ||f||^2.  Where the number of records is private, n is
the public guess, and the table may be several times larger: for a number k, lambda / k and k n in place
of lambda and n have the same minimiser, and the solver's proof asks for no more than k n records.

The function of x, columns as coordinates (``dpcore.releases.features``), is

    f(x) = sum over k of  cos_k cos(<w_k, x>) + sin_k sin(<w_k, x>)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Axis, Tally
from dpcore.errors import PrivacyLineError
from dpcore.lattice import Lattice
from dpcore.machines.features import KAPPA, FourierFeatures
from dpcore.machines.losses import Loss
from dpcore.machines.newton import LEAST_REGULARISATION
from dpcore.machines.svm import weight_sensitivity
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.base import Published, Release, Table, Uncertainty, named_points
from dpcore.releases.features import (
    coordinate_names,
    coordinates,
    scaled_positions,
    scaled_values,
)
from dpcore.statistic import Exact, Noisy

Floats = NDArray[np.float64]

MARGIN = 8
"""A table may have so many times the records that the plan guesses, where their number is private."""


@dataclass(frozen=True)
class KernelMachine(Release):
    """The last axis of the domain is what is predicted, the others are features.

    ``bandwidths``: of the Gaussian kernel, one per feature; ``regularisation``: lambda in
    mean loss + lambda ||f||^2; ``frequencies``: half the dimension of the feature space.
    """

    bandwidths: tuple[float, ...] = ()
    regularisation: float = 0.01
    frequencies: int = 256

    def __post_init__(self) -> None:
        for axis in self.feature_axes:
            scaled_positions(axis)
        if len(self.bandwidths) != len(self.feature_axes):
            raise ValueError("bandwidth: one number, or one for each feature")
        if not self.strength >= LEAST_REGULARISATION:
            raise ValueError(
                f"regularisation: must be at least {LEAST_REGULARISATION * self.margin}"
            )

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What the machine minimises."""

    @property
    @abstractmethod
    def targets(self) -> Floats:
        """What the loss takes for each code of the last axis: (size,)."""

    @property
    def margin(self) -> int:
        """k: 1 where the number of records is public."""
        return 1 if self.adjacency.public_rows else MARGIN

    @property
    def most_rows(self) -> int:
        return self.margin * self.rows

    @property
    def strength(self) -> float:
        """lambda / k."""
        return self.regularisation / self.margin

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
        sensitivity = weight_sensitivity(
            self.most_rows,
            self.strength,
            KAPPA,
            slope=self.loss.slope,
            terms=self.adjacency.sensitivity(moved=2, present=1),
        )
        return Lattice.for_sensitivity(sensitivity, self.features.size, self.most_rows)

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        return DiscreteGaussian.within(
            self.share, self.features.size, self.lattice.l2_sensitivity_squared
        )

    def statistic(self, tally: Tally) -> Exact:
        if tally.counts.sum() > self.most_rows:
            raise PrivacyLineError(
                f"the table has more than {self.margin} times the rows that the plan guesses: a"
                " machine cannot be trained to its stated accuracy"
            )
        codes = tally.domain.unpack(tally.cells)
        points = np.column_stack(
            [scaled_positions(axis)[codes[:, i]] for i, axis in enumerate(self.feature_axes)]
        )
        solution = self.loss.train(
            self.features.transform(points),
            self.targets[codes[:, -1]],
            tally.counts,
            self.most_rows,
            self.strength,
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
        """f at scaled points (k, coordinates)."""
        return np.asarray(self.features.transform(points) @ self.weights(noisy))

    def at(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> Floats:
        """f at points (k,) of the features in their own units; nulls are masked, None or NaN."""
        given = named_points(points, tuple(axis.name for axis in self.feature_axes))
        scaled = [scaled_values(axis, v) for axis, v in zip(self.feature_axes, given, strict=True)]
        return self.decide(noisy, np.column_stack(scaled))

    @abstractmethod
    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """What is predicted at points, with its errors (``dpcore.releases.base.Evaluable``)."""

    def publish(self, noisy: Noisy) -> Published:
        weights = self.weights(noisy) / np.sqrt(self.frequencies)
        names = [name for axis in self.feature_axes for name in coordinate_names(axis)]
        matrix = self.features.frequencies_matrix()
        table = Table(
            self.folder,
            self.name,
            {f"w_{name}": matrix[:, i] for i, name in enumerate(names)}
            | {
                "cos": weights[: self.frequencies],
                "sin": weights[self.frequencies :],
                "standard_error": np.full(
                    self.frequencies, self.decision_stddev / np.sqrt(self.frequencies)
                ),
            },
            {f"w_{name}": f"Frequency along the coordinate {name}" for name in names}
            | {
                "cos": "Noisy coefficient of the cosine of <w, x>",
                "sin": "Noisy coefficient of the sine of <w, x>",
                "standard_error": "Standard deviation of the noise in each of cos and sin",
            },
            uncertainty=tuple(
                Uncertainty(name, "standard_error", None, "exact", "Independent, by a known law.")
                for name in ("cos", "sin")
            ),
        )
        facts = {
            "coordinates": {axis.name: coordinates(axis) for axis in self.feature_axes},
            "loss": self.loss.name,
            "kernel_bandwidths": dict(
                zip((axis.name for axis in self.feature_axes), self.bandwidths, strict=True)
            ),
            "regularisation": self.regularisation,
        }
        return Published((table,), facts | self.facts())

    @property
    @abstractmethod
    def folder(self) -> str:
        """Of the published table."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """What a reader needs to make a prediction of f."""
