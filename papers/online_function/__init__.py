"""A noisy function answered one point at a time (Hall, Rinaldo & Wasserman 2013); no plan reaches it."""
