"""Levels of intervals."""

from statistics import NormalDist

SIGMAS_95 = NormalDist().inv_cdf(0.975)
"""The 97.5% quantile of the standard normal law: 5% of normal errors are larger in size."""
