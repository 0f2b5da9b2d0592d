"""Converts synthetic codes into records as people write them, from noisy statistics alone."""
