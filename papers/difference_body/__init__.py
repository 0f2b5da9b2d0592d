"""Densities by noise in the shape of what a record can change (Hall 2012, chapter 4, corrected)."""
