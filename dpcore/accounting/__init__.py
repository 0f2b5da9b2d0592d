"""Numerics of privacy prices for several mechanisms; rounding never makes a price look affordable.

budget        amounts of privacy as exact rationals, and how they are split
digits        fifty digits: decimals for comparisons, rationals rounded up for storage
threshold     the chance that a noisy 1 passes a threshold
gaussian      discrete Gaussian noise: the least variance that either proof below allows
zcdp          its proof by zero-concentrated differential privacy
analytic      continuous Gaussian noise, and how the discrete one inherits its privacy profile
concentrated  from a promise in alpha and beta to caps in rho, and back
"""
