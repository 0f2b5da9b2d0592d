"""Independent discrete Laplace noise on blocks of an integer vector, each at a scale of its own.

Claim.  Input: integer vectors x in blocks x_b with weights 0 < w_b <= 1.  Neighbours: any relation under
which sum over b of w_b |x_b - x'_b|_1 is at most ``l1_sensitivity`` = D.  Output: x + Z with independent
Z, P(Z = z) proportional to exp(-|z| w_b/scale) in block b.  It is (D/scale, 0, 0)-DP, and
(D/scale)^2/2-zCDP.

Preconditions.  As for equal noise (``laplace``), for every scale/w_b.

Proof.  Block by block the ratio of chances is at most exp(w_b |x_b - x'_b|_1 / scale) by the triangle
inequality; noise is independent, so ratios multiply and exponents add up to D/scale at most.

Ranges.  As for equal noise.

Source.  Dwork, McSherry, Nissim & Smith 2006; METHODS s.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import Event, LogRatio, Mechanism, Outputs, Round, summed
from dpcore.line.statistic import Noisy
from dpcore.mechanisms.blocks import Block, block_noise, in_blocks
from dpcore.mechanisms.laplace import DiscreteLaplace, LaplaceEvent, laplace_scale, noise_log_ratio
from dpcore.sampling import _validate
from dpcore.sampling import discrete_laplace as laplace
from dpcore.sampling.source import RandomSource


@dataclass(frozen=True)
class BlockLaplace(Mechanism):
    """Discrete Laplace noise of scale ``scale``/weight on each block; none is seen by differences."""

    blocks: tuple[Block, ...]
    l1_sensitivity: Fraction
    scale: Fraction

    side_by_side = True
    additive = True

    def __post_init__(self) -> None:
        if any(block.axes for block in self.blocks):
            raise ValueError("Laplace noise is not seen by differences")
        for weight in {block.weight for block in self.blocks}:
            _validate.positive_rational("scale", self.scale / weight, laplace.LARGEST_SCALE)

    @classmethod
    def within(
        cls, share: Budget, blocks: tuple[Block, ...], l1_sensitivity: Fraction
    ) -> BlockLaplace:
        """The mechanism that spends all of the share's alpha."""
        size = sum(block.size for block in blocks)
        return cls(size, blocks, l1_sensitivity, laplace_scale(l1_sensitivity, share.pure_alpha))

    @property
    def event(self) -> Event:
        return LaplaceEvent(self.l1_sensitivity, self.scale)

    def stddev(self, weight: Fraction) -> float:
        """Of the noise in a cell of a block of this weight."""
        return laplace.laplace_stddev(self.scale / weight)

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        times = self.size // sum(block.size for block in self.blocks)
        noise = block_noise(
            self.blocks,
            times,
            lambda weight, count: laplace.discrete_laplace(self.scale / weight, count, source),
        )
        return Noisy(values + noise.ravel(), reproducible=source.reproducible)

    def simulate(self, size: int, generator: np.random.Generator) -> Integers:
        times = size // sum(block.size for block in self.blocks)
        return block_noise(
            self.blocks,
            times,
            lambda weight, count: self._alike(weight, count).simulate(count, generator),
        ).ravel()

    def log_ratio(self, cells: Integers, near: Floats, far: Floats) -> LogRatio | None:
        parts = [
            (near_part, far_part, self.scale / block.weight)
            for (block, near_part), (_, far_part) in zip(
                in_blocks(self.blocks, near), in_blocks(self.blocks, far), strict=True
            )
        ]

        def log_ratio(outputs: Outputs) -> Floats:
            found = in_blocks(self.blocks, outputs)
            return np.asarray(
                sum(
                    summed(noise_log_ratio(seen, *law))
                    for (_, seen), law in zip(found, parts, strict=True)
                )
            )

        return log_ratio

    def rounds_of(self, outputs: Outputs, cells: Integers, exact: Floats) -> list[Round]:
        return [
            Round(self._alike(block.weight, block.size).noise_widths(noise), noise)
            for block, noise in in_blocks(self.blocks, outputs - exact)
        ]

    def moved_by(self, cells: Integers, near: Integers, far: Integers) -> float:
        parts = in_blocks(self.blocks, near - far)
        moved = sum((b.weight * int(np.abs(p).sum()) for b, p in parts), Fraction(0))
        return float(moved / self.l1_sensitivity)

    def distance(self, near: Floats, far: Floats) -> float:
        parts = in_blocks(self.blocks, near - far)
        return sum(float(b.weight) * float(np.abs(p).sum()) for b, p in parts) / float(self.scale)

    def _alike(self, weight: Fraction, size: int) -> DiscreteLaplace:
        """Equal noise on one block."""
        return DiscreteLaplace(size, Fraction(1), self.scale / weight)
