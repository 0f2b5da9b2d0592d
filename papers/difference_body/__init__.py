"""Densities by noise in the shape of all changes by one record (Hall 2012, chapter 4, corrected)."""
