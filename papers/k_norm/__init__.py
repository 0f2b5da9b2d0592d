"""Noise by the length of a vector: the gamma mechanism (Hall 2012, section 1.3).

sampler, mechanism   Euclidean noise on the integer lattice, exactly
release, section     ``mechanism: spectral-gamma`` of densities
"""
