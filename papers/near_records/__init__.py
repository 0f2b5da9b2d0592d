"""Synthetic records near the exact ones (Wasserman & Zhou 2010, sections 4 to 6).

by_distribution, by_series   the two exponential mechanisms on sequences of records
paths, tilted                their exact samplers
release, section             what is published, and what a plan says
"""
