"""Synthetic records drawn from a smoothed histogram (Wasserman & Zhou 2010, section 5)."""
