"""The exact privacy profile of Gaussian noise, and how integer noise inherits it.

Continuous noise N(0, s^2 D^2) on a real vector of L2 sensitivity D is (alpha, beta)-DP if

    Phi(1/(2s) - alpha s) - e^alpha Phi(-1/(2s) - alpha s) <= beta

and only if (Balle & Wang 2018, Theorem 8).  (Hall 2012 prints s = sqrt(2 ln(2/beta))/alpha, which
is proved for alpha <= 1; at beta = 1e-6 it is not private for alpha above 9.73.)  Theorem 8 is for real
arithmetic.  The noise here is the discrete Gaussian on integers, which inherits this calibration in any
dimension:

    Let x ~ N(u, (v - r) I) for an integer vector u, and round each coordinate at random to z with
    P(z | x) prop. to exp(-(z - x)^2 / (2 r)).  That is post-processing of continuous noise.  The
    normalising sum is within 1 +- e of a constant, e = 2 sum_j exp(-2 pi^2 r j^2) (Poisson), so the law
    of each coordinate of z is, within the same factors, a discrete Gaussian of parameter (v - r) + r = v
    around u.  Coordinates that neighbours share cancel; at most k = D^2 differ, since they differ by
    whole numbers.  So if N(0, v - r) is (alpha', beta')-DP at sensitivity D, the discrete Gaussian of
    parameter v is

        (alpha' + c, e^c beta')-DP,    c = k ln((1 + e)/(1 - e)) <= 9 k exp(-19.739 r).

    Other noise that inherits in the same way states its own k and any addition to c
    (``mechanisms.block_gaussian``).

>>> round(analytic_gaussian_scale(1, 1e-6), 5)
4.22468
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from dpcore.accounting.digits import decimal_of

ROUNDINGS = tuple(Fraction(r, 4) for r in (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24))
"""Fractions r of the variance that may be set aside for rounding; each r is at least 1/2."""

_SMALL = Fraction(1, 10**9)


def analytic_gaussian_scale(alpha: float, beta: float) -> float:
    """The least standard deviation of continuous noise over L2 sensitivity (Balle & Wang 2018).

    In floating point, with a relative error below 1e-9 if alpha >= 1e-3 and beta >= 1e-30.  For the
    noise that is drawn, ``covers_rounded`` computes the certificate with enough digits.
    """
    if not (alpha > 0 and 0 < beta < 1):
        raise ValueError(f"alpha must be positive and beta between 0 and 1, not {alpha} and {beta}")
    low, high = -40.0, 40.0 + math.log(1 / alpha)
    for _ in range(100):
        middle = (low + high) / 2
        if _log_profile(math.exp(middle), alpha) <= math.log(beta):
            high = middle
        else:
            low = middle
    return math.exp(high)


def gaussian_beta(mu_squared: Fraction, alpha: Decimal, digits: int) -> Decimal:
    """An upper bound on the least beta of continuous noise at mu = sensitivity / stddev.

    beta = Phi(mu/2 - alpha/mu) - e^alpha Phi(-mu/2 - alpha/mu), to at least ``digits`` places.
    """
    mu = math.sqrt(mu_squared)
    nearer, farther = mu / 2 - float(alpha) / mu, mu / 2 + float(alpha) / mu
    # Phi(10) differs from 1 by 1e-23: the bound would be of no use.
    if nearer > 10:
        return Decimal(1)
    if nearer < -math.sqrt(5 * digits) - 1:  # Phi(-t) <= exp(-t^2/2)/2
        return Decimal(10) ** -digits
    cancelled = (float(alpha) + farther**2 / 2) / math.log(10)
    # A tail is 1/2 minus a series, and is multiplied by e^alpha: both lose digits.
    with decimal.localcontext(prec=digits + math.ceil(cancelled) + 40):
        root = decimal_of(mu_squared).sqrt()
        upper = _normal_cdf(root / 2 - alpha / root)
        lower = _normal_cdf(-root / 2 - alpha / root)
        return upper - alpha.exp() * lower + Decimal(10) ** -(digits + 20)


@dataclass(frozen=True)
class Inherited:
    """How noise inherits from continuous noise.  ``coordinates``: k; ``loss``: an addition to c."""

    coordinates: Fraction
    loss: Fraction = Fraction(0)


def rounding(inherited: Inherited, part: Fraction) -> float:
    """The cost c of rounding with the fraction ``part`` of the variance; adds to alpha and ln beta."""
    return float(_rounding(inherited, part))


def covers_rounded(
    l2_sensitivity_squared: Fraction,
    variance: Fraction,
    alpha: Fraction,
    beta: Fraction,
    inherited: Inherited,
) -> bool:
    """Whether discrete Gaussian noise is (alpha, beta)-DP by the proof for rounded continuous noise."""
    usable = [
        part
        for part in ROUNDINGS
        # More than half of alpha would be lost to rounding otherwise.
        if part < variance and 2 * rounding(inherited, part) < min(float(alpha), 1.0)
    ]
    if not usable:
        return False

    def excess(part: Fraction) -> float:
        loss = rounding(inherited, part)
        scale = math.sqrt((variance - part) / l2_sensitivity_squared)
        return _log_profile(scale, float(alpha) - loss) + loss

    # Every part gives a valid proof, so the best one may be chosen in floating point.
    best = min(usable, key=excess)
    digits = math.ceil(-math.log10(beta)) + 25
    with decimal.localcontext(prec=digits + 40):
        loss = _rounding(inherited, best)
        left = decimal_of(alpha) - loss
        spent = gaussian_beta(l2_sensitivity_squared / (variance - best), left, digits)
        return spent * loss.exp() * (1 + Decimal("1e-20")) <= decimal_of(beta)


def inherited_gaussian(
    squared: Fraction, variance: Fraction, inherited: Inherited
) -> tuple[Fraction, Fraction] | None:
    """The continuous noise that replaces a discrete one in composition: mu squared, and c.

    ``squared``: the squared L2 sensitivity.

    mu is the sensitivity over the standard deviation.  Densities multiply over composition, so mu^2 and
    c add up.  None if the variance is too small to set aside a fraction for rounding with small c.
    """
    # In ascending order: the smallest part that costs next to nothing leaves the most variance.
    for part in ROUNDINGS:
        loss = rounding(inherited, part)
        if part < variance and loss < _SMALL:
            return squared / (variance - part), Fraction(loss) * (1 + _SMALL)
    return None


def _log_profile(scale: float, alpha: float) -> float:
    """ln beta of continuous noise, in floating point; minus infinity if beta is 0 as a float."""
    from scipy.special import log_ndtr  # slow to import, and most plans do not need it

    upper = float(log_ndtr(1 / (2 * scale) - alpha * scale))
    lower = alpha + float(log_ndtr(-1 / (2 * scale) - alpha * scale))
    return upper + math.log(-math.expm1(lower - upper)) if lower < upper else -math.inf


def _rounding(inherited: Inherited, part: Fraction) -> Decimal:
    exponent = Decimal("-19.739") * decimal_of(part)  # 2 pi^2 > 19.739
    rounded = 9 * decimal_of(inherited.coordinates) * exponent.exp()
    return (rounded + decimal_of(inherited.loss)) * (1 + Decimal("1e-20"))


def _normal_cdf(x: Decimal) -> Decimal:
    """Phi(x) in the present context: 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + ...)."""
    # All terms of this series have the same sign, so that its sum loses no digits.
    precision = decimal.getcontext().prec
    term = total = abs(x)
    square, odd = x * x, 1
    while term > total * Decimal(10) ** -precision:
        odd += 2
        term = term * square / odd
        total += term
    density = (-square / 2).exp() / (2 * _pi(precision)).sqrt()
    return Decimal("0.5") + (density * total).copy_sign(x)


@lru_cache(maxsize=64)
def _pi(digits: int) -> Decimal:
    """Machin: pi = 16 arctan(1/5) - 4 arctan(1/239)."""
    one: int = 10 ** (digits + 10)

    def arctan_inverse(n: int) -> int:
        power, total, k = one // n, 0, 0
        while power:
            total += (power if k % 2 == 0 else -power) // (2 * k + 1)
            power, k = power // (n * n), k + 1
        return total

    return Decimal(16 * arctan_inverse(5) - 4 * arctan_inverse(239)) / one
