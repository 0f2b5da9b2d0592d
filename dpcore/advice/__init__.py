"""Advice for a plan's author before any budget is spent, from public values only.

typical       the population that is assumed before there is a draw
cell_noise    the noise in a cell of a small table
modelled      the errors of tables and models, simulated from the assumed population
models        the widths of a model's intervals
records       how far synthetic records are from the survey's tables
usable        verdicts: good, rough or not usable
"""
