"""Numerics of privacy prices for several mechanisms; rounding never makes a price look affordable.

budget        amounts of privacy as exact rationals, and how they are split
digits        decimals of fifty digits for comparisons, rationals rounded up for storage
threshold     the chance that a noisy 1 passes a threshold
gaussian      discrete Gaussian noise: the least variance that either proof below allows
zcdp          the proof by zero-concentrated differential privacy
analytic      the proof by rounding continuous Gaussian noise
concentrated  converts a promise in alpha and beta into caps in rho, and back
"""
