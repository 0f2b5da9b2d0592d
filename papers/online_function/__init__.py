"""A noisy function answered one point at a time (Hall, Rinaldo & Wasserman 2013).

order     the part of a new value that earlier ones do not determine
online    the price of all answers, in whatever order they are asked
release   all answers at once, at points that a plan lists
section   what a plan says
"""
