"""Mechanisms: noise or a random choice, each scaled to a stated sensitivity.

Each file holds one complete mechanism and opens with its theorem: *Claim*, *Preconditions* that the
code checks, *Proof*, *Ranges* of integers and floats, *Source*.  ``dpcore.line.mechanism`` is the
contract.
"""

from dpcore.line.mechanism import Event, Mechanism
from dpcore.mechanisms.block_gaussian import BlockGaussian
from dpcore.mechanisms.block_laplace import BlockLaplace
from dpcore.mechanisms.compressed_margins import CompressedMargins
from dpcore.mechanisms.exponential import ExponentialMechanism
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.mechanisms.laplace import DiscreteLaplace
from dpcore.mechanisms.random_laplace import RandomLaplace
from dpcore.mechanisms.smooth_laplace import SmoothLaplace
from dpcore.mechanisms.stability import StabilityLaplace
from dpcore.mechanisms.thresholded import ThresholdedLaplace
from dpcore.mechanisms.tuned_noise import TunedNoise
from dpcore.mechanisms.within_share import WithinShare

THEOREMS: tuple[type[Mechanism], ...] = (
    DiscreteLaplace,
    DiscreteGaussian,
    ThresholdedLaplace,
    StabilityLaplace,
    ExponentialMechanism,
    TunedNoise,
    CompressedMargins,
    RandomLaplace,
    SmoothLaplace,
    BlockLaplace,
    BlockGaussian,
    GaussianRounds,
)
"""Entry i - 1 is the mechanism of theorem Ti.  Other texts cite these numbers: append new mechanisms."""

__all__ = [
    "THEOREMS",
    "BlockGaussian",
    "BlockLaplace",
    "CompressedMargins",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "ExponentialMechanism",
    "GaussianRounds",
    "Mechanism",
    "RandomLaplace",
    "SmoothLaplace",
    "StabilityLaplace",
    "ThresholdedLaplace",
    "TunedNoise",
    "WithinShare",
]
