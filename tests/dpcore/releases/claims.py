"""What a release states about neighbouring tables, and how far a pair of them lies apart by its norm."""

from fractions import Fraction

import numpy as np

from dpcore.line.mechanism import Mechanism
from dpcore.mechanisms import BlockGaussian, BlockLaplace, CompressedMargins, TunedNoise
from dpcore.mechanisms.block_gaussian import BlockGaussianEvent
from dpcore.mechanisms.exponential import ExponentialEvent
from dpcore.mechanisms.gaussian import GaussianEvent
from dpcore.mechanisms.gaussian_rounds import GaussianRoundsEvent
from dpcore.mechanisms.rounds import RoundsEvent
from dpcore.mechanisms.smooth_laplace import SmoothLaplaceEvent
from dpcore.releases.base import Release
from papers.difference_body.mechanism import BodyEvent, DifferenceBody
from papers.k_norm.mechanism import KNormEvent
from papers.k_norm.sampler import lattice_norm
from papers.minimax_count.mechanism import TableEvent
from papers.near_records.by_distribution import NearRecordsEvent
from papers.near_records.by_series import NearMeansEvent
from papers.sampled_histogram.mechanism import SampledEvent

ROUNDED = 1e-9
"""Claims about blocks are rounded up."""

SQUARED = (GaussianEvent, NearMeansEvent, BlockGaussianEvent)
"""Events that state the square of a Euclidean norm."""

OF_COUNTS = (
    SampledEvent,
    SmoothLaplaceEvent,
    NearRecordsEvent,
    GaussianRoundsEvent,
)
"""Events of mechanisms that get the counts themselves."""

BY_COUNTS = CompressedMargins | TunedNoise
"""Such mechanisms.  What they make of the counts is a claim of the tests of their releases."""


def claim(release: Release) -> Fraction:
    """The stated sensitivity, as a square where it is an L2 norm."""
    event = release.mechanism.event
    if isinstance(release.mechanism, CompressedMargins) or isinstance(event, GaussianRoundsEvent):
        return release.adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))
    if isinstance(event, OF_COUNTS) or isinstance(release.mechanism, TunedNoise):
        return Fraction(2)
    if isinstance(event, SQUARED):
        return event.l2_sensitivity_squared
    if isinstance(event, TableEvent):
        return Fraction(1)
    whole = isinstance(event, RoundsEvent | BodyEvent | ExponentialEvent | KNormEvent)
    return event.sensitivity if whole else event.l1_sensitivity


def squares(mechanism: Mechanism) -> bool:
    """Whether the claim is about a squared norm."""
    event = mechanism.event
    if isinstance(event, OF_COUNTS) or isinstance(mechanism, BY_COUNTS):
        return False
    return isinstance(event, SQUARED) or getattr(event, "noise", "") == "discrete-gaussian"


def moved(release: Release, difference: np.ndarray) -> np.ndarray:
    """The norm that the claim is about, along the last axis, in whole numbers."""
    event = release.mechanism.event
    if isinstance(release.mechanism, BlockGaussian | BlockLaplace):
        return moved_in_blocks(release.mechanism, difference)
    if squares(release.mechanism):
        return (difference**2).sum(axis=-1)
    if isinstance(release.mechanism, DifferenceBody):
        lengths = release.mechanism.body.norm(difference.reshape(-1, difference.shape[-1]))
        return lengths.reshape(difference.shape[:-1])
    if isinstance(event, KNormEvent):
        lengths = lattice_norm(difference.reshape(-1, event.dimension))
        return lengths.reshape(difference.shape[:-1])
    if isinstance(event, ExponentialEvent):  # the most of any choice, and of all together
        shape = (*difference.shape[:-1], -1, release.mechanism.candidates)
        moves = np.abs(difference).reshape(shape).max(axis=-1)
        return np.maximum(moves.max(axis=-1), moves.sum(axis=-1) / event.selections)
    if not isinstance(event, TableEvent):
        return np.abs(difference).sum(axis=-1)
    return np.abs(difference).max(axis=-1)


def moved_in_blocks(mechanism: BlockGaussian | BlockLaplace, difference: np.ndarray) -> np.ndarray:
    """A block of differences has the norm of the shortest table with these differences."""
    total, start = np.zeros(difference.shape[:-1]), 0
    for block in mechanism.blocks:
        part = difference[..., start : start + block.size].astype(float)
        start += block.size
        if isinstance(mechanism, BlockLaplace):
            total += float(block.weight) * np.abs(part).sum(axis=-1)
            continue
        seen = np.eye(block.size if not block.axes else 1)
        for n in block.axes:
            seen = np.kron(seen, np.hstack([np.eye(n - 1), -np.ones((n - 1, 1))]))
        shortest = part @ np.linalg.pinv(seen).T
        total += float(block.weight) * (shortest**2).sum(axis=-1)
    return total


def needs_beta(mechanism: Mechanism) -> bool:
    """Whether it has no pure form."""
    event = mechanism.event
    if isinstance(event, RoundsEvent):
        return event.noise == "discrete-gaussian"
    if isinstance(event, NearMeansEvent):
        return False
    by_noise = GaussianRoundsEvent | SmoothLaplaceEvent
    return squares(mechanism) or isinstance(event, by_noise)
