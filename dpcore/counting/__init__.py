"""Counting queries: how many of n records satisfy a condition, with the least expected loss.

A mechanism is a table: row j, the true count, gives the probability of every answer i.

programs   the best table, as a linear program: Bayes or minimax, pure or (alpha, beta)
remap      the fast form of pure tables: geometric noise, then the best answer given the noisy count
table      a floating-point table rounded to integers, with its privacy proved in exact arithmetic
"""
