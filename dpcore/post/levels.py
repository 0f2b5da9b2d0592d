"""Levels of intervals."""

from statistics import NormalDist

SIGMAS_95 = NormalDist().inv_cdf(0.975)
"""Standard errors that normal errors exceed in size with probability 5%."""
