"""Fits models to releases: reads formulas, and estimates coefficients with valid errors."""
