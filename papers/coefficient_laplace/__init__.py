"""Densities by Laplace noise on the first coefficients (Wasserman & Zhou 2010, section 6)."""
