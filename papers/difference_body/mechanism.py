"""K-norm noise by a body around all differences of records.

Claim.  Input: sums over records of public whole vectors U(c), c the record's cell.  Neighbours: one
record is replaced.  Output: x + Z, P(Z = z) proportional to exp(-||z||/scale), with the norm of a
symmetric body that contains every U(a) - U(b).  It is (STEPS/scale, 0, 0)-DP and (STEPS/scale)^2/2-zCDP.

Preconditions.  At most 6 dimensions; scale times the diameter over STEPS is at most 2^32 (``within``
and the body check them); STEPS <= alpha scale (the privacy line checks it).

Proof.  ``body`` defines ||.|| in whole numbers, symmetric and sub-additive, so that no
difference of two of the vectors is longer than STEPS; a replaced record moves the sum by one such
difference.  If one body lies inside another, the inner one gives less noise (Awan & Slavkovic 2021).

Ranges.  As for the Euclidean norm (``k_norm``), whose noise is thinned by exact rejection.

Source.  Hardt & Talwar 2010; Hall 2012, chapter 4, with another body (``body`` says why).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.line.mechanism import Event, Mechanism, Outputs
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms.laplace import laplace_scale
from dpcore.sampling import _validate
from dpcore.sampling.source import RandomSource
from papers.difference_body.body import STEPS, Body
from papers.k_norm.mechanism import length_chances
from papers.k_norm.sampler import LARGEST_SCALE


@dataclass(frozen=True)
class BodyEvent(Event):
    """Noise P(z) proportional to exp(-||z||/scale) by a body around all differences of records.

    ``sensitivity``: the largest difference of neighbours in the body's norm; ``sha256``: identifies the
    body, which follows from the plan.
    """

    kind = "difference-body"

    dimension: int
    sha256: str
    sensitivity: Fraction
    scale: Fraction

    @property
    def pure_alpha(self) -> Fraction:
        return self.sensitivity / self.scale

    def covered_by(self, share: Budget) -> bool:
        return self.scale > 0 and 0 < self.sensitivity <= share.alpha * self.scale


@dataclass(frozen=True)
class DifferenceBody(Mechanism):
    """P(z) proportional to exp(-||z||/scale) for each block of the body's dimension: exactly
    (STEPS/scale)-DP, since no difference of neighbours is longer than STEPS."""

    body: Body
    scale: Fraction

    side_by_side = True
    additive = True

    @classmethod
    def within(cls, share: Budget, vectors: Integers) -> DifferenceBody:
        """The mechanism that spends all of the share's alpha, for sums of ``vectors`` (cells, d)."""
        scale = laplace_scale(Fraction(STEPS), share.pure_alpha)
        body = Body.around(vectors)
        _validate.positive_rational("scale", scale * body.diameter / STEPS, LARGEST_SCALE)
        return cls(body.dimension, body, scale)

    @property
    def event(self) -> BodyEvent:
        return BodyEvent(self.body.dimension, self.body.digest, Fraction(STEPS), self.scale)

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        blocks = len(statistic.values) // self.body.dimension
        noise = self.body.noise(self.scale, blocks, source)
        return Noisy(statistic.values + noise.ravel(), reproducible=source.reproducible)

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats | None:
        noise = (outputs - exact.values).reshape(-1, self.body.dimension)
        lengths = self.body.norm(noise).reshape(len(outputs), -1)
        return length_chances(lengths, self.body.dimension, float(self.scale), factors)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        moved = (near.values - far.values).reshape(-1, self.body.dimension)
        return float(self.body.norm(moved).max() / STEPS)
