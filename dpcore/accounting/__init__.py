"""What an event costs in (alpha, beta), and what noise a budget buys.

price        whether a share of the budget covers an event: the question of the privacy line
laplace      discrete Laplace noise: pure alpha
exponential  choices from a finite set by their scores: pure alpha
adaptive     tables measured with noise, and some of them again: alpha, or alpha and beta
sampled      draws from an urn of private and public balls: pure alpha
random       low counts told exactly, noise that follows the data: random differential privacy
stability    discrete Laplace noise on occupied cells, and a threshold: alpha and beta
gaussian     discrete Gaussian noise: the least variance that either proof below allows
zcdp         its proof by zero-concentrated differential privacy
analytic     continuous Gaussian noise, classical and analytic calibration, and how the discrete one
             inherits the latter

>>> from fractions import Fraction
>>> from dpcore.budget import Budget
>>> from dpcore.events import GaussianEvent
>>> event = GaussianEvent(Fraction(2), gaussian_variance(Fraction(2), Fraction(1), Fraction("1e-6")))
>>> affordable(event, Budget.of("1", "1e-6")), affordable(event, Budget.of("0.99", "1e-6"))
(True, False)
"""

from dpcore.accounting.analytic import analytic_gaussian_scale, classical_gaussian_scale
from dpcore.accounting.exponential import exponential_scale
from dpcore.accounting.gaussian import gaussian_variance
from dpcore.accounting.history import Charged, Price, prices
from dpcore.accounting.laplace import laplace_scale
from dpcore.accounting.price import affordable
from dpcore.accounting.stability import stability_threshold

__all__ = [
    "Charged",
    "Price",
    "affordable",
    "analytic_gaussian_scale",
    "classical_gaussian_scale",
    "exponential_scale",
    "gaussian_variance",
    "laplace_scale",
    "prices",
    "stability_threshold",
]
