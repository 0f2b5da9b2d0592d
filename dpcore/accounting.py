"""What an event costs in (alpha, beta), and what noise a budget buys.

Discrete Laplace noise of scale b on an integer vector of L1 sensitivity D is (D/b)-DP, exactly.
Discrete Gaussian noise of variance v and L2 sensitivity D is rho-zCDP with rho = D^2/(2v) (Canonne,
Kamath & Steinke 2020, Theorem 14), in any dimension, and rho-zCDP implies (alpha, beta)-DP with

    beta = min over a > 1 of exp((a-1)(a rho - alpha)) / (a-1) * (1 - 1/a)^a      (their Cor. 13).

Every a gives a valid bound, so a good a may be found in floating point; the bound itself is then
evaluated with 50 digits, and ``gaussian_variance`` rounds up.  The analytic calibration of the
continuous Gaussian (METHODS a) would need a standard deviation 7 per cent smaller at beta = 1e-6
(20 per cent at beta = 0.1), but is proved for continuous noise only.

>>> event = GaussianEvent(Fraction(2), gaussian_variance(Fraction(2), Fraction(1), Fraction("1e-6")))
>>> affordable(event, Budget.of("1", "1e-6")), affordable(event, Budget.of("0.99", "1e-6"))
(True, False)
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

from scipy.optimize import minimize_scalar

from dpcore.budget import Budget
from dpcore.events import Event, GaussianEvent, LaplaceEvent

_DIGITS = decimal.Context(prec=50)


def laplace_scale(l1_sensitivity: Fraction, alpha: Fraction) -> Fraction:
    """The scale of discrete Laplace noise that costs exactly ``alpha``."""
    if alpha <= 0:
        raise ValueError("alpha must be positive")
    return l1_sensitivity / alpha


def gaussian_variance(
    l2_sensitivity_squared: Fraction, alpha: Fraction, beta: Fraction
) -> Fraction:
    """The least discrete Gaussian variance that is (alpha, beta)-DP, to nine digits, rounded up."""
    if alpha <= 0:
        raise ValueError("alpha must be positive")
    if not 0 < beta < 1:
        raise ValueError("a Gaussian mechanism needs beta between 0 and 1")
    if l2_sensitivity_squared <= 0:
        raise ValueError("the sensitivity must be positive")
    target = math.log(beta)
    low, high = 0.0, float(alpha)  # rho = alpha costs beta near 1 and is never enough
    for _ in range(80):
        rho = (low + high) / 2
        if _log_beta(rho, float(alpha), _best_order(rho, float(alpha))) <= target:
            low = rho
        else:
            high = rho
    if not low:
        raise ValueError(f"no Gaussian noise is large enough for alpha {alpha}, beta {beta}")
    exact = l2_sensitivity_squared / (2 * Fraction(low))
    variance = _round_up(exact * (1 + Fraction(1, 10**9)))
    if not affordable(GaussianEvent(l2_sensitivity_squared, variance), Budget(alpha, beta)):
        raise ValueError(f"no Gaussian noise could be certified for alpha {alpha}, beta {beta}")
    return variance


def affordable(event: Event, share: Budget) -> bool:
    """Whether the event costs at most ``share``; an event without a price is never affordable."""
    if isinstance(event, LaplaceEvent):
        return event.scale > 0 and event.l1_sensitivity <= share.alpha * event.scale
    if isinstance(event, GaussianEvent):
        if event.variance <= 0 or not 0 < share.beta < 1 or share.alpha <= 0:
            return False
        rho = event.l2_sensitivity_squared / (2 * event.variance)
        order = _best_order(float(rho), float(share.alpha))
        return _beta_bound(rho, share.alpha, order) <= _decimal(share.beta)
    return False


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


def _round_up(value: Fraction) -> Fraction:
    """The next rational above with twelve significant decimal digits: short to print and store."""
    quantum = Fraction(10) ** (math.floor(math.log10(value)) - 11)
    return math.ceil(value / quantum) * quantum
