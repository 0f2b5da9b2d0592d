"""Counting queries: how many of n records satisfy a condition, with the least expected loss.

A mechanism is a table: row j, the true count, holds the chances of every answer i.

programs   the best table there is, as a linear program: Bayes or minimax, pure or (alpha, beta)
remap      the fast form of the pure ones: geometric noise, then the best answer to what was seen
table      a table of floats as one of whole numbers, with its privacy proved in exact arithmetic
"""
