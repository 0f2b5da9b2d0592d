"""Levels of intervals."""

from statistics import NormalDist

SIGMAS_95 = NormalDist().inv_cdf(0.975)
"""The 97.5% quantile of the standard normal law: normal errors exceed it in size with probability 5%."""
