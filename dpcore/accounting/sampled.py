"""Draws from an urn of private and public balls (``dpcore.mechanisms.sampled``)."""

from __future__ import annotations

import decimal
from decimal import Decimal

from dpcore.accounting.digits import DIGITS, MARGIN, decimal_of
from dpcore.budget import Budget
from dpcore.events import SampledEvent


def covers_sampled(event: SampledEvent, share: Budget) -> bool:
    """Whether the share's alpha pays for the draws; they are pure."""
    return event.prior > 0 and event.draws > 0 and sampled_loss(event) <= decimal_of(share.alpha)


def sampled_loss(event: SampledEvent) -> Decimal:
    """The alpha of the draws, rounded up."""
    with decimal.localcontext(DIGITS):
        polya = event.urn == "dirichlet-multinomial"
        loss = (1 + decimal_of((event.draws if polya else 1) / event.prior)).ln()
        return loss * (1 if polya else event.draws) * MARGIN
