"""Grades how accurately a release determines a table that synthetic records follow."""

from math import isnan

WITHIN, ROUGHLY = 0.1, 0.3
"""Fractions of the records that may be in a wrong cell of a table that is graded accurate, or rough."""

GRADES = ("not measured", "noise", "unknown", "rough", "accurate")
NOT_MEASURED, NOISE, UNKNOWN, ROUGH, ACCURATE = GRADES


def grade(measured: bool, distance: float, coarse: bool = False) -> str:
    """The grade of a table that the records follow.

    ``distance``: total variation from the records to the noisy table, plus that expected from noise
    between the noisy and the exact table; NaN if either is unknown.  By the triangle inequality the
    error of the records is at most this sum, if noise is as expected.  ``coarse``: most records are in
    one bin of a column, and their positions inside it are assumed.
    """
    if not measured:
        return NOT_MEASURED
    if isnan(distance):
        return UNKNOWN
    if distance > ROUGHLY:
        return NOISE
    return ROUGH if coarse or distance > WITHIN else ACCURATE
