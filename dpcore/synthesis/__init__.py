"""From synthetic codes to records as people write them; all of it follows from noisy statistics."""
