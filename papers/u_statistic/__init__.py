"""Means of a kernel over all pairs of records (Hall, Rinaldo & Wasserman 2011, section 6)."""
