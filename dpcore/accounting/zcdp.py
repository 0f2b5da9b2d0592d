"""Zero-concentrated differential privacy of discrete Gaussian noise.

Discrete Gaussian noise of variance v and L2 sensitivity D is rho-zCDP with rho = D^2/(2v) (Canonne,
Kamath & Steinke 2020, Theorem 14), in any dimension, and rho-zCDP implies (alpha, beta)-DP with

    beta = min over a > 1 of exp((a-1)(a rho - alpha)) / (a-1) * (1 - 1/a)^a      (their Cor. 13).

Every a gives a valid bound, so a good a may be found in floating point; the bound itself is then
evaluated with 50 digits.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

from scipy.optimize import minimize_scalar

_DIGITS = decimal.Context(prec=50)


def largest_rho(alpha: Fraction, beta: Fraction) -> float:
    """The largest rho whose conversion is (alpha, beta), to the precision of floats; maybe 0."""
    target = math.log(beta)
    low, high = 0.0, float(alpha)  # rho = alpha costs beta near 1 and is never enough
    for _ in range(80):
        rho = (low + high) / 2
        if _log_beta(rho, float(alpha), _best_order(rho, float(alpha))) <= target:
            low = rho
        else:
            high = rho
    return low


def covers_rho(rho: Fraction, alpha: Fraction, beta: Fraction) -> bool:
    """Whether rho-zCDP implies (alpha, beta), certainly; all positive."""
    order = _best_order(float(rho), float(alpha))
    return _beta_bound(rho, alpha, order) <= _decimal(beta)


def _log_beta(rho: float, alpha: float, order: float) -> float:
    excess = order - 1
    return excess * (order * rho - alpha) - math.log(excess) + order * math.log1p(-1 / order)


def _best_order(rho: float, alpha: float) -> float:
    """The a > 1 that makes the bound least, near enough: any a is valid."""
    centre = math.log(max((alpha / rho + 1) / 2 - 1, 1e-6))
    found = minimize_scalar(
        lambda t: _log_beta(rho, alpha, 1 + math.exp(t)),
        bounds=(centre - 8, centre + 8),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1 + math.exp(float(found.x))


def _beta_bound(rho: Fraction, alpha: Fraction, order: float) -> Decimal:
    """The bound on beta at one order, with 50 digits."""
    with decimal.localcontext(_DIGITS):
        a, r, e = Decimal(order), _decimal(rho), _decimal(alpha)
        exponent = (a - 1) * (a * r - e) - (a - 1).ln() + a * (1 - 1 / a).ln()
        return exponent.exp() * (1 + Decimal("1e-40"))


def _decimal(value: Fraction) -> Decimal:
    with decimal.localcontext(_DIGITS):
        return Decimal(value.numerator) / Decimal(value.denominator)
