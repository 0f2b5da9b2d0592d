"""Gaussian processes: kernels, whitening on a public grid, and answers one point at a time."""
