"""The exponential mechanism: a choice costs twice the sensitivity of its scores over their scale.

Replacing a record changes the weight exp(-score/scale) of each candidate by a factor of at most
exp(D/scale), and that of all together by as much the other way (McSherry & Talwar 2007, Theorem 6).
"""

from __future__ import annotations

from fractions import Fraction

from dpcore.budget import Budget
from dpcore.events import ExponentialEvent


def exponential_scale(sensitivity: Fraction, selections: int, alpha: Fraction) -> Fraction:
    """The scale at which that many choices cost exactly ``alpha`` together."""
    if alpha <= 0:
        raise ValueError("alpha must be positive")
    return 2 * sensitivity * selections / alpha


def covers_exponential(event: ExponentialEvent, share: Budget) -> bool:
    """Whether the share's alpha pays for the choices."""
    spent = 2 * event.sensitivity * event.selections
    return event.scale > 0 and event.selections > 0 and spent <= share.alpha * event.scale
