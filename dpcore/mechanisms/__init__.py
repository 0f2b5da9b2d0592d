"""Mechanisms: noise, with the sensitivity it was scaled to.

``Mechanism`` is what the privacy line calls; each kind has a file of its own.
"""

from dpcore.mechanisms.additive import DiscreteGaussian, DiscreteLaplace
from dpcore.mechanisms.base import Interval, Mechanism
from dpcore.mechanisms.thresholded import ThresholdedLaplace

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Interval", "Mechanism", "ThresholdedLaplace"]
