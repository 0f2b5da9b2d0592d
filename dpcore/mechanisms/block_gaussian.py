r"""Discrete Gaussian noise on blocks of an integer vector, with a scale for each block.

A block may be measured by differences alone: noise is added to each cell of a table, and the output
contains nothing about the table's sums over the block's axes (``blocks``).

Claim.  Input: integer vectors in blocks x_b with weights 0 < w_b <= 1.  |x_b| is the Euclidean norm of
a block; for a block of differences it is the norm of its table with the axes centred.  Neighbours: any
relation under which sum over b of w_b |x_b - x'_b|^2 is at most ``l2_sensitivity_squared`` = D^2.
Output: x_b + Z_b with independent Z_b.  The numbers of Z_b are independent with P(z) proportional to
exp(-z^2 w_b/(2 variance)); in a block of differences they are the differences of such noise on the whole
table.  With v_b = variance/w_b, it is (D^2/(2 variance) + loss)-zCDP, where loss is 0 without blocks of
differences and 10^-12 with some, and (alpha, beta, 0)-DP for all alpha, beta that either proof of
``gaussian`` allows with this loss added.

Preconditions.  Every v_b lies between 2^-90 and 2^90 (the sampler checks it).  For each block of
differences and each of its axes, of n >= 3 cells, 9 K exp(-19.739 v_b/n) <= 10^-12, where K is the
number of cells, over all blocks, that noise is added to (checked here).  There are at most 6 axes
(``Block``).

Proof.  Let C centre the axes of one block with N cells, and z be its noise.  The output depends on z
only through C z, a point of the lattice L = C Z^N; its differences are coordinates of L.

(1) The law of C z.  Take the axes one by one.  Tables with the same differences along axis j differ by a
point of a lattice M, added to every slice along j.  Summing exp(-|z|^2/(2 v)) over them gives by
Poisson's formula exp(-|C_j z|^2/(2 v)) times a constant and times 1 + sum over w in M*, w not 0, of
exp(-2 pi^2 v |w|^2/n_j) and a phase.  M is the product of the centred lattices of the axes before j
(their duals are the integer vectors of sum zero) and of the integers for the axes after j.  So M* lies
in the integer tables of N/n_j cells, and the factor is within 1 +- e_j with 1 + e_j = (1 + s_j)^(N/n_j),
s_j <= 2.0001 exp(-19.739 v/n_j).  So P(C z = y) = exp(-|y|^2/(2 v)) g(y)/G with ln(max g/min g) at most
the sum over j of ln((1 + e_j)/(1 - e_j)), which is below 9 N exp(-19.739 v/max n) under the
preconditions (4.01 for each axis, and the N/n_j add up to at most 2 N).  Over all blocks this is the
loss c.

(2) zCDP.  Let x' = x + d in L, p and p' the laws around them, a > 1.  Then sum of p^a p'^(1-a) = exp(a
(a-1) |d|^2/(2 v)) times the sum over y of exp(-|y - m|^2/(2 v)) g(y-x) (g(y-x)/g(y-x'))^(a-1)/G for a
real m in the span.  The last factor is at most exp((a-1) c), and the rest is a sum of exp(-|z - m|^2/(2
v)) over integer tables z divided by the same at m = 0, which by Poisson's formula is at most 1.  So the
Renyi divergence of order a is at most a |d|^2/(2 v) + c, and at most a (|d|^2/(2 v) + c).  Independent
blocks add up.

(3) (alpha, beta).  Continuous noise N(0, (v-r) C) on the centred table, rounded at random to y in L with
chances proportional to exp(-|y - x|^2/(2 r)), has the law exp(-|y|^2/(2 v)) on L up to a factor: the sum
of the weights in the rounding.  By Poisson it is within 1 +- e, 1 + e = (1 + s)^N, s = 2.0001
exp(-19.739 r), as the dual of L lies in the integer tables.  With r = v t for one t in all blocks, r >=
t times ``variance``, so ``accounting.analytic`` holds with continuous noise of variance (1 - t) v_b, k =
K coordinates and the loss c from (1) added, wherever 9 K exp(-19.739 t variance) is below 1/2.

Ranges.  Every release checks that |x_i| < 2^61.  A number of Z_b is a signed sum of at most 2^6 draws,
each of which reaches 2^55 with a chance below exp(-2^18); a sum that wrapped around would still be
post-processing.  No float takes part in a draw.

Source.  Xiao et al. 2023 (ResidualPlanner, continuous noise); Canonne, Kamath & Steinke 2020, Theorem
14.  Parts (1) to (3) are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.accounting.analytic import Inherited
from dpcore.accounting.budget import Budget
from dpcore.accounting.digits import round_up
from dpcore.accounting.gaussian import gaussian_variance
from dpcore.arrays import Floats
from dpcore.line.statistic import Statistic
from dpcore.mechanisms.blocks import Block, BlockNoise, in_blocks
from dpcore.mechanisms.gaussian import DiscreteGaussian, GaussianEvent, gaussian_chances

LOSS = Fraction(1, 10**12)
"""The largest rho that all blocks of differences may cost together."""


@dataclass(frozen=True)
class BlockGaussianEvent(GaussianEvent):
    """Discrete Gaussian noise of variance ``variance`` or more on blocks of an integer vector.

    ``l2_sensitivity_squared``: the largest squared difference between neighbours, summed with the
    blocks' precisions as weights; ``coordinates``: how many numbers get noise; ``loss``: the price of
    measuring blocks by differences.
    """

    kind = "discrete-gaussian-blocks"

    coordinates: Fraction
    loss: Fraction

    @property
    def inherited(self) -> Inherited:
        return Inherited(self.coordinates, self.loss)

    def covered_by(self, share: Budget) -> bool:
        least = min(self.l2_sensitivity_squared, self.coordinates, self.loss)
        return least >= 0 and super().covered_by(share)

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        return None if self.loss < 0 else super().concentrated


@dataclass(frozen=True)
class BlockGaussian(BlockNoise):
    """Discrete Gaussian noise of variance ``variance``/weight on each block: (alpha, beta)-DP."""

    l2_sensitivity_squared: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        among = coordinates(self.blocks)
        wide = [i for i, b in enumerate(self.blocks) if seen_badly(b, self.variance, among)]
        if wide:
            raise ValueError(
                f"blocks {wide} have too little noise to be measured by differences alone"
            )
        for weight in {block.weight for block in self.blocks}:
            self.of_block(weight)  # checks the variance

    @classmethod
    def within(
        cls, share: Budget, blocks: tuple[Block, ...], l2_sensitivity_squared: Fraction
    ) -> BlockGaussian:
        """Return the mechanism that spends all of the share's rho, or all of its alpha and beta.

        Raises ``ValueError`` if the noise of this share is too small for blocks that measure only
        differences.
        """
        variance = block_variance(share, blocks, l2_sensitivity_squared)
        return cls(sum(block.size for block in blocks), blocks, l2_sensitivity_squared, variance)

    @property
    def event(self) -> BlockGaussianEvent:
        return BlockGaussianEvent(
            self.l2_sensitivity_squared,
            self.variance,
            Fraction(coordinates(self.blocks)),
            loss(self.blocks),
        )

    def of_block(self, weight: Fraction, size: int = 1) -> DiscreteGaussian:
        return DiscreteGaussian(size, Fraction(1), self.variance / weight)

    def block_chances(self, block: Block, noise: Floats, factors: Floats) -> Floats:
        squares = np.sum(block.metric(noise) * noise, axis=1)
        seen = np.full(len(noise), block.size)
        return gaussian_chances(squares, seen, float(self.variance / block.weight), factors)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        parts = in_blocks(self.blocks, near.values - far.values)
        squared = sum((b.weight * b.norm_squared(part) for b, part in parts), Fraction(0))
        return math.sqrt(squared / self.l2_sensitivity_squared)

    def distance(self, near: Statistic, far: Statistic) -> float:
        # As ``moved_by``, but in floats, which are much faster for large tables.
        squared = sum(
            float(block.weight) * float(np.sum(block.metric(part[None]) * part))
            for block, part in in_blocks(self.blocks, near.values - far.values)
        )
        return math.sqrt(squared / self.variance)


def coordinates(blocks: tuple[Block, ...]) -> int:
    """The number of cells that noise is added to, over all blocks."""
    return sum(block.cells for block in blocks)


def loss(blocks: tuple[Block, ...]) -> Fraction:
    """The price of measuring blocks by differences, for all of them together."""
    return LOSS if any(block.axes for block in blocks) else Fraction(0)


def seen_badly(block: Block, variance: Fraction, among: int) -> bool:
    """Whether a block of differences has too little noise; ``among``: coordinates of all blocks."""
    if not block.axes:
        return False
    least = float(variance) / float(block.weight) / max(block.axes)
    # The 1, a factor of e, is a margin for floating-point errors.
    return 19.739 * least < math.log(9 * among / LOSS) + 1


def block_variance(
    share: Budget, blocks: tuple[Block, ...], l2_sensitivity_squared: Fraction
) -> Fraction:
    """The smallest variance that the share affords, before ``seen_badly`` is checked."""
    if share.rho:
        if share.rho <= loss(blocks):
            raise ValueError("rho is too small for blocks of differences")
        return round_up(l2_sensitivity_squared / (2 * (share.rho - loss(blocks))))
    inherited = Inherited(Fraction(coordinates(blocks)), loss(blocks))
    return gaussian_variance(l2_sensitivity_squared, share.alpha, share.beta, inherited)
