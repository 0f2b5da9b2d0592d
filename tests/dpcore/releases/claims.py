"""What a release states about neighbouring tables, and how far a pair of them lies apart by its norm."""

from fractions import Fraction

import numpy as np

from dpcore.line.mechanism import Event
from dpcore.mechanisms import AdaptiveMargins, BlockGaussian, BlockLaplace
from dpcore.mechanisms.adaptive_margins import AdaptiveMarginsEvent
from dpcore.mechanisms.block_gaussian import BlockGaussianEvent
from dpcore.mechanisms.compressed_margins import CompressedMarginsEvent
from dpcore.mechanisms.exponential import ExponentialEvent
from dpcore.mechanisms.gaussian import GaussianEvent
from dpcore.mechanisms.gaussian_rounds import GaussianRoundsEvent
from dpcore.mechanisms.smooth_laplace import SmoothLaplaceEvent
from dpcore.mechanisms.staged import StagedEvent
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
    StagedEvent,
    GaussianRoundsEvent,
    CompressedMarginsEvent,  # what it makes of them is a claim of ``test_compressed_microdata``
)
"""Events of mechanisms that get the counts themselves."""

BY_RECORDS = CompressedMarginsEvent | GaussianRoundsEvent
"""Those whose own steps count what a record moves."""


def claim(release: Release) -> Fraction:
    """The stated sensitivity, as a square where it is an L2 norm."""
    event = release.mechanism.event
    if isinstance(event, SQUARED) and not isinstance(event, OF_COUNTS):
        return event.l2_sensitivity_squared
    if isinstance(event, TableEvent):
        return Fraction(1)
    if isinstance(event, BY_RECORDS):
        return release.adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))
    if isinstance(event, OF_COUNTS):
        return Fraction(2)
    whole = isinstance(event, AdaptiveMarginsEvent | BodyEvent | ExponentialEvent | KNormEvent)
    return event.sensitivity if whole else event.l1_sensitivity


def squares(event: Event) -> bool:
    """Whether the claim is about a squared norm."""
    if isinstance(event, OF_COUNTS):
        return False
    return isinstance(event, SQUARED) or getattr(event, "noise", "") == "discrete-gaussian"


def moved(release: Release, difference: np.ndarray) -> np.ndarray:
    """The norm that the claim is about, along the last axis, in whole numbers."""
    event = release.mechanism.event
    if isinstance(release.mechanism, BlockGaussian | BlockLaplace):
        return moved_in_blocks(release.mechanism, difference)
    if isinstance(release.mechanism, AdaptiveMargins):  # later: ``test_adaptive_microdata``
        difference = difference[..., : release.mechanism.first.size]
    if squares(event):
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


def needs_beta(event: Event) -> bool:
    """Whether it has no pure form."""
    if isinstance(event, StagedEvent):
        return event.choice_beta + event.beta > 0
    if isinstance(event, NearMeansEvent):
        return False
    if isinstance(event, CompressedMarginsEvent):
        return event.noise == "discrete-gaussian"
    by_noise = GaussianRoundsEvent | SmoothLaplaceEvent
    return squares(event) or isinstance(event, by_noise)
