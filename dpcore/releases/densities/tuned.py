"""A density or function at a bandwidth that is drawn from the records first.

``rule`` is Silverman's rule, from private quartiles (``bandwidth``), or cross-validation
(``least_error``).

Before the choice is known, everything is stated for the smallest bandwidth, where noise is largest.  The
noise is always as large as at the smallest bandwidth: the sensitivity at others is hardly smaller.
Chosen bandwidths are rounded to a public ladder, smallest * 2^(k/8), so that only few of them have to be
prepared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Bins
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.abilities import EstimatesDensity, Samplable
from dpcore.releases.densities.bandwidth import Bandwidth, silverman
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.least_error import LeastError
from dpcore.releases.tuned import TunedRelease

MOST_COLUMNS = 2

RUNGS = 8
"""The number of bandwidths in each doubling."""

BandwidthRule = Literal["quantiles", "error"]


@dataclass(frozen=True)
class TunedDensity(TunedRelease[Density | SmoothFunction], EstimatesDensity, Samplable):
    """A density at a bandwidth that is drawn first; ``smooth``: the density at the smallest bandwidth.

    The rows and the share in ``smooth`` are ignored.
    """

    smooth: Density | SmoothFunction
    first_share: Fraction
    rule: BandwidthRule = "quantiles"

    setting, least = "bandwidth", "smallest bandwidth"
    chart = "curve"
    refines = "density"

    def __post_init__(self) -> None:
        if len(self.domain.axes) > MOST_COLUMNS:
            raise ValueError("bandwidth: private needs one or two columns; state numbers")
        self.adjacency.require_public_rows("a private bandwidth")
        if self.smooth.nullable:
            raise ValueError(
                "bandwidth: private needs columns without nulls and point masses; state numbers"
            )
        of_one = isinstance(self.smooth, Density) and len(self.domain.axes) == 1
        if self.rule == "error" and not of_one:
            raise ValueError(
                "bandwidth: private: error needs a density of one column; use private: quantiles"
            )
        super().__post_init__()

    @property
    def statistics(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.smooth.statistics

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return self.smooth.published_names(axis)

    def resolves(self, axis: Bins) -> bool:
        return self.smooth.resolves(axis)

    def _at_most_noise(self, share: Budget) -> Density | SmoothFunction:
        return replace(self.smooth, rows=self.rows, share=share)

    @cached_property
    def choice(self) -> Bandwidth | LeastError:
        """The first step, which chooses the bandwidth."""
        if self.rule == "error":
            return LeastError(self._ladder, self._shares[0])
        facts = (self.name, self.domain, self.rows, self._shares[0])
        return Bandwidth(*facts, smallest=self.smooth.bandwidths[0])

    @property
    def _ladder(self) -> tuple[Density, ...]:
        """The second step at each bandwidth from the smallest to the range of the column."""
        rungs = range(math.floor(RUNGS * math.log2(1 / self.smooth.bandwidths[0])) + 1)
        steps = (self._at_rungs([rung]) for rung in rungs)
        return tuple(step for step in steps if isinstance(step, Density))

    def after(self, chosen: Integers) -> Density | SmoothFunction:
        """The second step at the chosen bandwidths, rounded to the ladder.

        Raises ``PrivacyLineError`` if a record moves its numbers further than the noise is for.
        """
        release = self._at(self.choice.bandwidths(Noisy(chosen)))
        # This compares both sensitivities before noise is drawn, not only when it is published.
        _ = release.mechanism
        return release

    def _at(self, bandwidths: Sequence[float]) -> Density | SmoothFunction:
        """The second step at the nearest rungs of the ladder."""
        smallest = self.smooth.bandwidths[0]
        return self._at_rungs([round(RUNGS * math.log2(h / smallest)) for h in bandwidths])

    def _at_rungs(self, rungs: Sequence[int]) -> Density | SmoothFunction:
        smallest, law = self.smooth.bandwidths[0], self._first.mechanism
        nearest = tuple(float(smallest * 2 ** (rung / RUNGS)) for rung in rungs)
        # The scale of Laplace noise is the same at all bandwidths: a record has a fixed number of parts.
        kept = law if isinstance(law, DiscreteGaussian) else None
        return replace(self._first, bandwidths=nearest, law=kept)

    @property
    def _longest(self) -> int:
        first = self._first
        return first.most_numbers if isinstance(first, Density) else super()._longest

    def require_publishable(self) -> None:
        if isinstance(self.choice, Bandwidth):
            self.choice.require_publishable()
        self._first.require_publishable()
        widest = self.choice.widest
        try:
            self._at([widest] * len(self.domain.axes)).require_publishable()
        except ValueError as error:
            raise ValueError(
                f"at a bandwidth of {widest:.3g}, the largest that may be drawn: {error}"
            ) from None
        super().require_publishable()

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """``estimate`` at points, from the density at the chosen bandwidth."""
        release, drawn = self.settled(noisy)
        return release.evaluate(drawn, points)

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        release, drawn = self.settled(noisy)
        return release.supported_margin(drawn, names)

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Records with a value in every column, by systematic sampling from the density."""
        release, drawn = self.settled(noisy)
        return release.sample(drawn, rows)

    @property
    def usual(self) -> Density | SmoothFunction:
        """The second step at the rule-of-thumb bandwidth of a typical column."""
        columns = len(self.domain.axes)
        return self._at(
            [max(silverman(0.25, self.rows, columns), self.smooth.bandwidths[0])] * columns
        )

    @property
    def error_parts(self) -> Mapping[str, float]:
        """The typical noise, and bounds of approximation errors, at the smallest bandwidth."""
        return self._first.error_parts
