"""Mechanisms: noise, or a random choice, with the sensitivity it was scaled to.

``Mechanism`` is what the privacy line calls; each kind has a file of its own.
"""

from dpcore.mechanisms.adaptive_margins import AdaptiveMargins
from dpcore.mechanisms.additive import DiscreteGaussian, DiscreteLaplace
from dpcore.mechanisms.base import AdditiveMechanism, Interval, Mechanism
from dpcore.mechanisms.compressed_margins import CompressedMargins
from dpcore.mechanisms.difference_body import DifferenceBody
from dpcore.mechanisms.exponential import ExponentialMechanism
from dpcore.mechanisms.k_norm import DiscreteKNorm
from dpcore.mechanisms.near_means import NearMeansMechanism
from dpcore.mechanisms.near_records import NearRecordsMechanism
from dpcore.mechanisms.propose_test_release import ProposeTestRelease
from dpcore.mechanisms.random_laplace import RandomLaplace
from dpcore.mechanisms.sampled import Sampled
from dpcore.mechanisms.smooth_laplace import SmoothLaplace
from dpcore.mechanisms.stability import StabilityLaplace
from dpcore.mechanisms.staged import Staged
from dpcore.mechanisms.tabulated import TabulatedMechanism
from dpcore.mechanisms.thresholded import ThresholdedLaplace

__all__ = [
    "AdaptiveMargins",
    "AdditiveMechanism",
    "CompressedMargins",
    "DifferenceBody",
    "DiscreteGaussian",
    "DiscreteKNorm",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "Interval",
    "Mechanism",
    "NearMeansMechanism",
    "NearRecordsMechanism",
    "ProposeTestRelease",
    "RandomLaplace",
    "Sampled",
    "SmoothLaplace",
    "StabilityLaplace",
    "Staged",
    "TabulatedMechanism",
    "ThresholdedLaplace",
]
