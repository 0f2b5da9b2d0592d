"""Does the event of a release cost as much as its draws?  The price is computed a second time.

    rounds    an event of several draws costs no less than the draws one by one, as the mechanism lists
              them (``Mechanism.one_by_one``): in alpha, in rho and in the chance to fail.  Other checks
              measure the width, and replay the sensitivity, of the same listed laws
    loss      the log-ratio that a mechanism states for outputs on two neighbouring tables: it is never
              above the alpha of a pure event, and its divergences stay below the bounds of rho

The first check is deterministic; the second cannot reject a correct alpha.  For rho: with L the
log-ratio of an output, and a > 1, rho-zCDP says that exp((a - 1) (L - a rho)) has a mean of at most 1,
and so has the product over independent outputs; the mean over some a is above 1/error with probability
at most ``error`` (Markov).  So the audit prices the actual draws, not the whole share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import logsumexp

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.audit.draws import ReleaseDraws
from dpcore.line.mechanism import Event, affordable
from dpcore.mechanisms.gaussian import GaussianEvent
from dpcore.sampling.source import RandomSource

ORDERS = (1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
"""The orders of divergence at which a rho is tested."""

ROUNDING = 1e-6
"""The relative tolerance: prices are rounded up, and log-ratios are floats."""

NEARLY = Fraction(999, 1000)
"""Alphas of Gaussian noise are compared only this closely, because separate bounds prove them."""


@dataclass(frozen=True)
class AuditedPrice:
    """The contradictions to the price of an event, in words."""

    faults: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.faults


def audit_price(
    tables: Sequence[ReleaseDraws], draws: int, error: float, source: RandomSource
) -> AuditedPrice:
    """Price a release's event again, from its rounds and from outputs on pairs of neighbouring tables.

    ``draws``: for all pairs together; a correct price is rejected with probability at most ``error``.
    """
    release, each = tables[0].release, max(1, draws // len(tables))
    event = release.mechanism.event
    lost = [
        lost_more(event, score(sides.draw(0, each, source)), error / len(tables))
        for sides in tables
        for score in sides.scores()[:1]
    ]
    found = priced_below(event, release.mechanism.one_by_one, release.share)
    found += [max(filter(None, lost))[1]] if any(lost) else []
    return AuditedPrice(tuple(dict.fromkeys(found)))


def priced_below(event: Event, parts: Sequence[Event], share: Budget) -> list[str]:
    """The coordinates in which an event costs less than its rounds one by one, in words."""
    found: list[str] = []
    if len(parts) < 2:
        return found
    alphas = [part.pure_alpha for part in parts]
    alpha = sum((each for each in alphas if each is not None), Fraction(0))
    if None not in alphas and event.pure_alpha is not None:
        found += _less("alpha", event.pure_alpha, alpha)
    prices = [part.concentrated for part in parts]
    total = [sum(each) for each in zip(*(p for p in prices if p), strict=True)]
    if event.concentrated and None not in prices:
        found += _less("rho", event.concentrated[0], total[0])
        found += _less("the chance to fail", event.concentrated[1], total[1])
    if share.rho or found:
        return found
    if None not in alphas and event.pure_alpha is None:
        if affordable(event, replace(share, alpha=alpha * (1 - Fraction(ROUNDING)))):
            found.append("the event costs less alpha than its rounds")
    elif None not in prices and any(part.inherited_gaussian for part in parts):
        # Noise of squared sensitivity 2 rho v and variance v, for a v at which rounding costs little.
        single = GaussianEvent(2 * total[0] * 2**20, Fraction(2**20))
        least = _least_alpha(single, share) * NEARLY
        if affordable(event, Budget(least, share.beta, share.gamma)):
            found.append("the event costs less alpha than one draw of equally wide Gaussian noise")
    return found


def lost_more(event: Event, ratios: Floats, error: float) -> tuple[float, str] | None:
    """A loss that contradicts the price, from log-ratios (n,) of independent outputs, and words."""
    alpha, price = event.pure_alpha, event.concentrated
    most = float(np.abs(ratios).max())
    if alpha is not None and not event.spent_gamma and most > float(alpha) * (1 + ROUNDING):
        return most, f"an output has a loss of {most:.3g}, above the alpha of {float(alpha):.3g}"
    if price is None or price[1] or event.spent_gamma:
        return None
    rho = float(price[0])
    logs = [(a - 1) * float(ratios.sum() - len(ratios) * a * rho) for a in ORDERS]
    if float(logsumexp(logs)) - math.log(len(ORDERS)) < math.log(1 / error):
        return None
    mean = float(ratios.mean())
    return mean, f"the mean loss is {mean:.3g}, too large for a rho of {rho:.3g}"


def _less(name: str, stated: Fraction, parts: Fraction | int) -> list[str]:
    if stated >= parts * (1 - Fraction(ROUNDING)):
        return []
    return [f"{name} is {float(stated):.3g} for the event and {float(parts):.3g} for its rounds"]


def _least_alpha(event: Event, share: Budget) -> Fraction:
    """The smallest alpha for which the share's beta covers an event, to a relative 2^-20."""
    low, high = Fraction(0), share.alpha
    while not affordable(event, Budget(high, share.beta)):
        low, high = high, 2 * high
    while high - low > high / 2**20:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if affordable(event, Budget(middle, share.beta)) else (middle, high)
        )
    return high
