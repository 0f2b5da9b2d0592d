"""Grades how accurately a release determines a table that synthetic records follow."""

from math import isnan

WITHIN, ROUGHLY = 0.1, 0.3
"""Records that may be in a wrong cell of a table that is graded accurate, or rough: fractions of the
records outside its largest cell."""

FEWEST = 0.05
"""The smallest fraction of records that counts as outside: if nearly all are in one cell, a table that
is exact to half a per cent of the records is accurate."""

GRADES = ("not measured", "noise", "unknown", "rough", "accurate")
NOT_MEASURED, NOISE, UNKNOWN, ROUGH, ACCURATE = GRADES


def grade(measured: bool, distance: float, outside: float = 1.0, coarse: bool = False) -> str:
    """The grade of a table that the records follow.

    ``distance``: total variation from the records to the noisy table, plus that expected from noise
    between the noisy and the exact table; NaN if either is unknown.  By the triangle inequality the
    error of the records is at most this sum, if noise is as expected.  ``outside``: the share of the
    records outside the table's largest cell. If 95 people in 100 say no to two questions, a table of
    both is within a tenth of all records whatever it states about the others.  ``coarse``: most records
    are in one bin of a column, and their positions inside it are assumed.
    """
    if not measured:
        return NOT_MEASURED
    if isnan(distance):
        return UNKNOWN
    relative = distance / max(outside, FEWEST)
    if relative > ROUGHLY:
        return NOISE
    return ROUGH if coarse or relative > WITHIN else ACCURATE
