"""Mechanisms of random differential privacy: they pay gamma for those whom noise does not cover."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

from dpcore.accounting.digits import DIGITS, MARGIN, decimal_of
from dpcore.budget import Budget
from dpcore.events import RandomLaplaceEvent, SmoothLaplaceEvent


def covers_random(event: RandomLaplaceEvent | SmoothLaplaceEvent, share: Budget) -> bool:
    """Whether the share pays for the event in alpha, beta and gamma."""
    if not 0 < event.exposure <= share.gamma < 1:
        return False
    if isinstance(event, RandomLaplaceEvent):
        return event.scale > 0 and event.l1_sensitivity <= share.alpha * event.scale
    return (
        min(event.alpha, event.level_alpha) > 0
        and event.alpha + event.level_alpha <= share.alpha
        and 0 < share.beta < 1
        and _tail(event.alpha, event.growth) <= decimal_of(share.beta)
    )


def _tail(alpha: Fraction, growth: Fraction) -> Decimal:
    """beta of a scale that may change by one step (``dpcore.mechanisms.smooth_laplace``); 1 if the
    change alone costs more than half of alpha."""
    with decimal.localcontext(DIGITS):
        half, step = decimal_of(alpha / 2), decimal_of(growth - 1)
        if step <= 0 or (1 + step).ln() > half:
            return Decimal(1)
        return (half / 2 - half / step).exp() * MARGIN
