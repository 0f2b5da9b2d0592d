"""Discrete Laplace noise of scale b on an integer vector of L1 sensitivity D is (D/b)-DP, exactly."""

from __future__ import annotations

from fractions import Fraction

from dpcore.budget import Budget
from dpcore.events import LaplaceEvent


def laplace_scale(l1_sensitivity: Fraction, alpha: Fraction) -> Fraction:
    """The scale of discrete Laplace noise that costs exactly ``alpha``."""
    if alpha <= 0:
        raise ValueError("alpha must be positive")
    return l1_sensitivity / alpha


def covers_laplace(event: LaplaceEvent, share: Budget) -> bool:
    """Whether the share's alpha pays for the noise."""
    return event.scale > 0 and event.l1_sensitivity <= share.alpha * event.scale
