"""Counts by the table of least worst-case loss (Hall 2012, section 2.2).

programs, table, mechanism   the linear program, its private table in integers, and the draw
release, section             what is published, and what a plan says
"""
