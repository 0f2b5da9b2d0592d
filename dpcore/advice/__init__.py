"""Advice for a plan's author before any budget is spent, from public values only.

typical         the population that is assumed before there is a draw
kinds           which tables to draw: a histogram, all pairs or all triples of the same columns
least           the error of a release compared with the best possible one
count_limits    the least error of counts, whatever the mechanism
margin_limits   the least error of margins, whatever the linear queries
"""
