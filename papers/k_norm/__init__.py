"""Noise by the length of a vector: the gamma mechanism and its relatives (Hall 2012, section 1.3).

sampler, mechanism   Euclidean noise on the integer lattice, exactly
release, section     ``mechanism: spectral-gamma`` of densities
other_norms          noise by the cube norm and by the norm of discs; no plan reaches it
"""
