"""Renyi differential privacy of a history: Gaussian noise and pure events, composed order by order.

Renyi divergences of one order add up over adaptive composition (Mironov 2017, Prop. 1).  At order a

    discrete Gaussian noise of rho    a rho                        (Canonne, Kamath & Steinke 2020)
    a pure event of alpha             that of randomised response, of which every mechanism of that
                                      alpha is post-processing (Kairouz, Oh & Viswanath 2015):
                                      ln(p^a q^(1-a) + q^a p^(1-a)) / (a - 1),  p/q = e^alpha

and a divergence R at order a gives (alpha, beta)-DP with (Canonne et al., Prop. 12)

    alpha = R + (ln(1/beta) - ln a) / (a - 1) + ln(1 - 1/a).

Every order gives a valid bound: a good one is found in floating point and evaluated with 50 digits.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dpcore.accounting.digits import DIGITS, decimal_of, round_up
from dpcore.arrays import Floats

_SLACK = Decimal("1e-30")
"""More than the rounding of thousands of events."""


def renyi_alpha(rho: Fraction, pure: Mapping[Fraction, int], beta: Fraction) -> Fraction:
    """An upper bound on alpha at ``beta``, positive, for a total ``rho`` of Gaussian noise and
    ``pure`` events, given as how many there are of each alpha."""
    order = _best_order(rho, pure, beta)
    with decimal.localcontext(DIGITS):
        a = Decimal(order)
        divergence = a * decimal_of(rho)
        for alpha, times in pure.items():
            divergence += times * _randomised_response(decimal_of(alpha), a)
        converted = (-decimal_of(beta).ln() - a.ln()) / (a - 1) + (1 - 1 / a).ln()
        found = max(divergence + converted, Decimal(0))
        return round_up(Fraction(found * (1 + _SLACK) + _SLACK))


def _randomised_response(alpha: Decimal, a: Decimal) -> Decimal:
    """The divergence at order ``a``, in a form whose exponentials do not overflow."""
    larger = a * alpha + (1 + ((1 - 2 * a) * alpha).exp()).ln()
    return (larger - alpha - (1 + (-alpha).exp()).ln()) / (a - 1)


def _best_order(rho: Fraction, pure: Mapping[Fraction, int], beta: Fraction) -> float:
    """The order that makes the bound least, near enough, by two grids of orders."""

    def bound(excess: Floats) -> Floats:
        a = 1 + excess
        result = a * float(rho) + (-math.log(beta) - np.log(a)) / excess + np.log1p(-1 / a)
        for alpha, times in pure.items():
            e = float(alpha)
            sums = np.logaddexp(a * e, -excess * e) - np.logaddexp(e, 0)
            result += times * sums / excess
        return np.asarray(result)

    coarse = np.geomspace(1e-6, 1e9, 600)
    at = int(np.argmin(bound(coarse)))
    fine = np.geomspace(coarse[max(at - 1, 0)], coarse[min(at + 1, 599)], 400)
    return 1 + float(fine[np.argmin(bound(fine))])
