"""Independent discrete Laplace noise on blocks of an integer vector, with a scale for each block.

Claim.  Input: integer vectors x in blocks x_b with weights 0 < w_b <= 1.  Neighbours: any relation under
which sum over b of w_b |x_b - x'_b|_1 is at most ``l1_sensitivity`` = D.  Output: x + Z with independent
Z, P(Z = z) proportional to exp(-|z| w_b/scale) in block b.  It is (D/scale, 0, 0)-DP, and
(D/scale)^2/2-zCDP.

Preconditions.  As for equal noise (``laplace``), for every scale/w_b.

Proof.  In each block the ratio of chances is at most exp(w_b |x_b - x'_b|_1 / scale) by the triangle
inequality; noise is independent, so ratios multiply and exponents add up to at most D/scale.

Ranges.  As for equal noise.

Source.  Dwork, McSherry, Nissim & Smith 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.line.mechanism import Event
from dpcore.line.statistic import Statistic
from dpcore.mechanisms.blocks import Block, BlockNoise, in_blocks
from dpcore.mechanisms.laplace import (
    DiscreteLaplace,
    LaplaceEvent,
    laplace_chances,
    laplace_scale,
)


@dataclass(frozen=True)
class BlockLaplace(BlockNoise):
    """Discrete Laplace noise of scale ``scale``/weight on each block, without differences."""

    l1_sensitivity: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        if any(block.axes for block in self.blocks):
            raise ValueError(
                "Laplace noise is for blocks that are measured whole, not by differences"
            )
        for weight in {block.weight for block in self.blocks}:
            self.of_block(weight)  # checks the scale

    @classmethod
    def within(
        cls, share: Budget, blocks: tuple[Block, ...], l1_sensitivity: Fraction
    ) -> BlockLaplace:
        """Return the mechanism that spends all of the share's alpha."""
        size = sum(block.size for block in blocks)
        return cls(size, blocks, l1_sensitivity, laplace_scale(l1_sensitivity, share.pure_alpha))

    @property
    def event(self) -> Event:
        return LaplaceEvent(self.l1_sensitivity, self.scale)

    def of_block(self, weight: Fraction, size: int = 1) -> DiscreteLaplace:
        return DiscreteLaplace(size, Fraction(1), self.scale / weight)

    def block_chances(self, block: Block, noise: Floats, factors: Floats) -> Floats:
        return laplace_chances(noise, float(self.scale / block.weight), factors)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        parts = in_blocks(self.blocks, near.values - far.values)
        moved = sum((b.weight * int(np.abs(p).sum()) for b, p in parts), Fraction(0))
        return float(moved / self.l1_sensitivity)
