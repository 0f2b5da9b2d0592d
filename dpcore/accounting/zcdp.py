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

from dpcore.accounting.digits import DIGITS, MARGIN, SURPLUS, decimal_of, round_up


def largest_rho(alpha: Fraction, beta: Fraction) -> float:
    """The largest rho that converts to (alpha, beta), in floating point; may be 0."""
    target = math.log(beta)
    low, high = 0.0, float(alpha)  # rho = alpha costs beta near 1 and is never enough
    for _ in range(80):
        rho = (low + high) / 2
        if _log_beta(rho, float(alpha), _best_order(rho, float(alpha))) <= target:
            low = rho
        else:
            high = rho
    return low


def affordable_rho(alpha: Fraction, beta: Fraction) -> Fraction:
    """A rho that is proved to imply (alpha, beta), only slightly below the largest such rho.

    Raises ``ValueError`` if there is none.
    """
    if not 0 < beta < 1 or alpha <= 0:
        raise ValueError("a Gaussian mechanism needs beta between 0 and 1, and a positive alpha")
    found = Fraction(largest_rho(alpha, beta)).limit_denominator(10**15)
    for margin in SURPLUS:
        rho = found * (1 - margin)
        if rho > 0 and covers_rho(rho, alpha, beta):
            return rho
    raise ValueError(f"no Gaussian noise could be certified for alpha {alpha}, beta {beta}")


def least_alpha(rho: Fraction, beta: Fraction) -> Fraction:
    """An alpha for which rho-zCDP is proved to imply (alpha, beta), only slightly above the smallest."""
    if not 0 < beta < 1 or rho <= 0:
        raise ValueError("zero-concentrated privacy needs beta between 0 and 1, and a positive rho")
    # This alpha is always enough (Bun & Steinke 2016, Proposition 1.3).
    low, high = 0.0, float(rho) + 2 * math.sqrt(float(rho) * -math.log(beta)) + 1e-9
    for _ in range(60):
        alpha = (low + high) / 2
        if _log_beta(float(rho), alpha, _best_order(float(rho), alpha)) <= math.log(beta):
            high = alpha
        else:
            low = alpha
    for margin in SURPLUS:
        certified = round_up(Fraction(high) * (1 + margin))
        if covers_rho(rho, certified, beta):
            return certified
    raise ValueError(
        f"no alpha could be certified for rho {float(rho):.3g}, beta {float(beta):.3g}"
    )


def covers_rho(rho: Fraction, alpha: Fraction, beta: Fraction) -> bool:
    """Whether rho-zCDP is proved to imply (alpha, beta); all arguments are positive."""
    order = _best_order(float(rho), float(alpha))
    return _beta_bound(rho, alpha, order) <= decimal_of(beta)


def _log_beta(rho: float, alpha: float, order: float) -> float:
    excess = order - 1
    return excess * (order * rho - alpha) - math.log(excess) + order * math.log1p(-1 / order)


def _best_order(rho: float, alpha: float) -> float:
    """An a > 1 that approximately minimises the bound; any a is valid.

    The logarithm of the bound is convex in a; its slope is (2a - 1) rho - alpha + log(1 - 1/a).
    """

    def slope(order: float) -> float:
        return (2 * order - 1) * rho - alpha + math.log1p(-1 / order)

    lower, upper = 1.0, 2.0
    # The best order of a tiny rho may be huge; as any order is valid, the search may stop before it.
    while slope(upper) < 0 and upper < 2.0**100:
        lower, upper = upper, 2 * upper
    for _ in range(50):
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if slope(middle) < 0 else (lower, middle)
    return upper


def _beta_bound(rho: Fraction, alpha: Fraction, order: float) -> Decimal:
    """The bound on beta at one order, with 50 digits."""
    with decimal.localcontext(DIGITS):
        a, r, e = Decimal(order), decimal_of(rho), decimal_of(alpha)
        exponent = (a - 1) * (a * r - e) - (a - 1).ln() + a * (1 - 1 / a).ln()
        return exponent.exp() * MARGIN
