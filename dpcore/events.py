"""Privacy events: what was done, as data whose meaning never changes.

The ledger stores the event of every draw.  An accountant interprets it, today by pure and
zero-concentrated differential privacy (``dpcore.accounting``), some day more tightly; the history
can then be re-priced (METHODS q).  Sensitivities are for replace-one neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpcore.sampling.k_norm import Norm


@dataclass(frozen=True)
class LaplaceEvent:
    """Discrete Laplace noise P(z) proportional to exp(-|z|/scale) on an integer vector.

    ``l1_sensitivity``: the most by which neighbours differ, summed over coordinates.
    """

    l1_sensitivity: Fraction
    scale: Fraction

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": "discrete-laplace",
            "neighbours": "replace-one",
            "l1_sensitivity": str(self.l1_sensitivity),
            "scale": str(self.scale),
        }


@dataclass(frozen=True)
class GaussianEvent:
    """Discrete Gaussian noise P(z) proportional to exp(-z^2/(2 variance)) on an integer vector.

    ``l2_sensitivity_squared``: the most by which neighbours differ, squared and summed.
    """

    l2_sensitivity_squared: Fraction
    variance: Fraction

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": "discrete-gaussian",
            "neighbours": "replace-one",
            "l2_sensitivity_squared": str(self.l2_sensitivity_squared),
            "variance": str(self.variance),
        }


@dataclass(frozen=True)
class ExponentialEvent:
    """Choices i from finite sets, P(i) proportional to exp(-score_i/scale), ``selections`` of them.

    ``sensitivity``: the most by which a neighbour changes any score.
    """

    sensitivity: Fraction
    scale: Fraction
    selections: int

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": "exponential",
            "neighbours": "replace-one",
            "sensitivity": str(self.sensitivity),
            "scale": str(self.scale),
            "selections": str(self.selections),
        }


@dataclass(frozen=True)
class TableEvent:
    """An answer drawn from a table of chances, one row for each true count.

    Neighbours are in the same row or in adjacent ones, and all adjacent rows were proved to be
    (alpha, beta)-indistinguishable in exact arithmetic; ``sha256`` names the table.
    """

    alpha: Fraction
    beta: Fraction
    sha256: str

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": "table",
            "neighbours": "replace-one",
            "alpha": str(self.alpha),
            "beta": str(self.beta),
            "sha256": self.sha256,
        }


@dataclass(frozen=True)
class SampledEvent:
    """``draws`` records drawn from an urn of the histogram with ``prior`` balls for each cell."""

    urn: str
    draws: int
    prior: Fraction

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": self.urn,
            "neighbours": "replace-one",
            "draws": str(self.draws),
            "prior": str(self.prior),
        }


@dataclass(frozen=True)
class RandomLaplaceEvent:
    """Discrete Laplace noise on counts, but for low ones, which are told exactly.

    ``exposure``: the chance that a random record and its random replacement are not protected by
    the noise, which is what the event costs in gamma.
    """

    l1_sensitivity: Fraction
    scale: Fraction
    exposure: Fraction

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": "random-discrete-laplace",
            "neighbours": "replace-one",
            "l1_sensitivity": str(self.l1_sensitivity),
            "scale": str(self.scale),
            "exposure": str(self.exposure),
        }


@dataclass(frozen=True)
class SmoothLaplaceEvent:
    """A sum with discrete Laplace noise, whose scale follows the data by steps of ``growth``.

    ``alpha`` protects the sum, ``level_alpha`` the scale; ``exposure`` is the cost in gamma.
    """

    alpha: Fraction
    level_alpha: Fraction
    growth: Fraction
    exposure: Fraction

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": "smooth-discrete-laplace",
            "neighbours": "replace-one",
            "alpha": str(self.alpha),
            "level_alpha": str(self.level_alpha),
            "growth": str(self.growth),
            "exposure": str(self.exposure),
        }


@dataclass(frozen=True)
class StabilityEvent:
    """Discrete Laplace noise on the occupied cells of a histogram, shown above ``threshold`` only.

    ``l1_sensitivity``: the most by which neighbours differ, summed over cells; a record is in one
    cell, so that replacing it empties or newly occupies one at most.
    """

    l1_sensitivity: Fraction
    scale: Fraction
    threshold: int

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": "stability-laplace",
            "neighbours": "replace-one",
            "l1_sensitivity": str(self.l1_sensitivity),
            "scale": str(self.scale),
            "threshold": str(self.threshold),
        }


@dataclass(frozen=True)
class KNormEvent:
    """Noise P(z) proportional to exp(-||z||/scale) on integer vectors of ``dimension`` numbers.

    ``norm``: l2 (Euclidean, rounded up), cube (the largest coordinate) or discs (the largest pair,
    Euclidean, rounded up); ``sensitivity``: the most by which neighbours differ, in that norm.
    """

    norm: Norm
    dimension: int
    sensitivity: int
    scale: Fraction

    def to_dict(self) -> dict[str, str]:
        """JSON form."""
        return {
            "event": "discrete-k-norm",
            "neighbours": "replace-one",
            "norm": self.norm,
            "dimension": str(self.dimension),
            "sensitivity": str(self.sensitivity),
            "scale": str(self.scale),
        }


Event = (
    LaplaceEvent
    | GaussianEvent
    | ExponentialEvent
    | TableEvent
    | SampledEvent
    | RandomLaplaceEvent
    | SmoothLaplaceEvent
    | StabilityEvent
    | KNormEvent
)
