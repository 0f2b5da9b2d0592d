"""Kernel machines with Gaussian-process noise, evaluable anywhere without the data.

A machine is trained in a public feature space of dimension D that approximates the Gaussian kernel
(``dpcore.machines.features``), without an intercept, on the distinct rows of the tally.  Let M be
the largest slope of the loss.  In that space the exact weight vector moves by at most M kappa/(lambda n)
when one record is replaced (Hall, Rinaldo & Wasserman 2013, Proposition 8), and by at most half of this
when one is added or removed; a bound from the solver's certified gap is added.  Isotropic Gaussian noise
on the weights is Gaussian-process noise with the kernel as covariance: the function has the same
standard error everywhere.

Training minimises the sum of losses + lambda n ||f||^2.  If the number of records is private, n is the
public guess, and the table may be several times larger.  For any k, lambda / k and k n instead of
lambda and n have the same minimiser, and the solver's proof then needs at most k n records.  A table of
any size satisfies this, because the losses are multiplied by the ``taper`` of each record
(``domain.adjacency``): at the guess it is 1 - 1/(4 k), as if lambda were 3% larger.  The lemma there
bounds the difference of the sums of the losses' subgradients of neighbours at any f, and this suffices
for the sensitivity of the minimiser.

The function of x, the columns as coordinates (``dpcore.releases.machines.features``), is

    f(x) = sum over k of  cos_k cos(<w_k, x>) + sin_k sin(<w_k, x>)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.adjacency import TAPER_ERROR
from dpcore.domain.axes import Axis
from dpcore.domain.lattice import Lattice
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.machines.features import FourierFeatures
from dpcore.machines.losses import Loss
from dpcore.machines.newton import LEAST_REGULARISATION, train
from dpcore.machines.sensitivity import weight_sensitivity
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.abilities import Trained
from dpcore.releases.base import named_points
from dpcore.releases.machines.features import (
    coordinate_names,
    coordinates,
    require_names_apart,
    scaled_positions,
    scaled_values,
    wave_columns,
)
from dpcore.releases.table import Published, Table, Uncertainty
from dpcore.releases.work import Work

TRAINED = 2e-9
"""CPU seconds for each distinct row and pair of features, including the trainings of an audit."""

MARGIN = 8
"""k if the number of records is private: the losses weigh at most k times the guess."""


@dataclass(frozen=True)
class KernelMachine(Trained):
    """A kernel machine that predicts the last axis of the domain from the other axes.

    ``bandwidths``: of the Gaussian kernel, one per feature; ``regularisation``: lambda in mean loss +
    lambda ||f||^2; ``frequencies``: half the dimension of the feature space.
    """

    finer = "more regularisation, a larger bandwidth or fewer features"

    bandwidths: tuple[float, ...] = ()
    regularisation: float = 0.01
    frequencies: int = 256

    chart = "features"
    boundary: ClassVar[float | None] = None
    """The output at which the decision changes, for classifiers."""

    def __post_init__(self) -> None:
        for axis in self.feature_axes:
            scaled_positions(axis)
        require_names_apart(self.feature_axes)
        if len(self.bandwidths) != len(self.feature_axes):
            raise ValueError("bandwidth: one number, or one for each feature")
        if not self.strength >= LEAST_REGULARISATION:
            raise ValueError(
                f"regularisation: must be at least {LEAST_REGULARISATION * self.margin}"
            )
        super().__post_init__()

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The loss that training minimises."""

    @property
    @abstractmethod
    def targets(self) -> Floats:
        """The target (size,) of the loss for each code of the last axis."""

    @property
    def margin(self) -> int:
        """The factor k on lambda and n in the module's docstring; 1 if the number of records is
        public."""
        return 1 if self.adjacency.public_rows else MARGIN

    @property
    def most_rows(self) -> int:
        return self.margin * self.rows

    @property
    def strength(self) -> float:
        """The regularisation lambda / k that the solver uses."""
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
        return FourierFeatures(tuple(widths), self.frequencies)

    @property
    def work(self) -> Work:
        trained = min(self.rows, self.domain.size)
        size = self.features.size
        return Work(TRAINED * trained * size**2, 8 * trained * size)

    @cached_property
    def lattice(self) -> Lattice:
        # Tapered counts are rounded in both neighbours; their sum is at most most_rows.
        tapering = 0.0 if self.adjacency.public_rows else TAPER_ERROR * self.most_rows
        # This includes the solver's tolerance, a public number: about one per cent.
        sensitivity = weight_sensitivity(
            self.most_rows,
            self.strength,
            slope=self.loss.slope,
            terms=self.adjacency.sensitivity(moved=2, present=1) + 2 * tapering,
        )
        return Lattice.for_sensitivity(sensitivity, self.features.size, self.most_rows)

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        return DiscreteGaussian.within(
            self.share, self.features.size, self.lattice.l2_sensitivity_squared
        )

    @property
    def largest_statistic(self) -> int:
        # Without records weights are zero, and each added record moves them by at most the sensitivity.
        return Lattice.largest(self.most_rows)

    def statistic(self, tally: Tally) -> Exact:
        return Exact(self.numbers(tally))

    def numbers(self, tally: Tally) -> Integers:
        """The exact statistic: private."""
        return self.lattice.encode(self.trained(tally)[0])

    def trained(self, tally: Tally) -> tuple[Floats, float]:
        """The weights (D,) without noise, and the minimised problem: private."""
        # In tables larger than the guess, each loss counts less (module docstring).
        share = self.adjacency.taper(tally.total, self.most_rows)
        codes = tally.domain.unpack(tally.cells)
        points = np.column_stack(
            [scaled_positions(axis)[codes[:, i]] for i, axis in enumerate(self.feature_axes)]
        )
        features, targets = self.features.transform(points), self.targets[codes[:, -1]]
        counts = tally.counts * share
        weights = train(self.loss, features, targets, counts, self.most_rows, self.strength).weights
        losses = self.loss.value(features @ weights, targets)
        minimum = losses @ counts / self.most_rows + self.strength * (weights @ weights)
        return weights, float(minimum)

    def weights(self, noisy: Noisy) -> Floats:
        """The noisy weights (D,)."""
        return self.lattice.decode(noisy.values)

    @property
    def decision_stddev(self) -> float:
        """The standard deviation of the noise in f(x), the same at every x."""
        return self.lattice.step * self.mechanism.stddev

    def decide(self, noisy: Noisy, points: Floats) -> Floats:
        """f at scaled points (k, coordinates)."""
        return np.asarray(self.features.transform(points) @ self.weights(noisy))

    def at(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> Floats:
        """f at points (k,) of the features in their own units; a null is masked, None or NaN."""
        given = named_points(points, tuple(axis.name for axis in self.feature_axes))
        scaled = [scaled_values(axis, v) for axis, v in zip(self.feature_axes, given, strict=True)]
        return self.decide(noisy, np.column_stack(scaled))

    def settled(self, noisy: Noisy) -> tuple[KernelMachine, Noisy]:
        """The machine and its draw: it has no setting that is drawn first."""
        return self, noisy

    @abstractmethod
    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """The predictions at points, with their errors (``dpcore.releases.base.Evaluable``)."""

    def publish(self, noisy: Noisy) -> Published:
        weights = self.weights(noisy) / np.sqrt(self.frequencies)
        error = self.decision_stddev / math.sqrt(self.frequencies)
        columns = wave_columns(
            self.feature_axes, self.features.frequencies_matrix().T, weights, error, "<w, x>"
        )
        known = "From the distribution of the noise, which is independent for each coefficient."
        stated = (
            Uncertainty(name, "standard_error", None, "exact", known) for name in ("cos", "sin")
        )
        table = Table(self.folder, self.name, columns, tuple(stated))
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
    def output(self) -> str:
        """The predicted quantity, in words."""

    def outputs(self, f: Floats) -> Floats:
        """The predictions at values of f (k,)."""
        return f

    @property
    def output_stddev(self) -> float:
        """The standard deviation of the noise in a prediction, the same everywhere."""
        return self.decision_stddev

    @property
    @abstractmethod
    def folder(self) -> str:
        """The folder of the published table."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """Facts that turn f into a prediction."""
