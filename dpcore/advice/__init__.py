"""What a plan's author may want to know before spending, from public values alone.

typical         the population that is supposed before there is a draw
kinds           which tables to draw: a histogram, pairs or triples of the same columns
least           how far a release is from the best possible
count_limits    the least error of counts, whatever the mechanism
margin_limits   the least error of margins, whatever the linear queries
"""
