"""How well a table that synthetic records follow is known, in a word."""

from math import isnan

WITHIN, ROUGHLY = 0.1, 0.3
"""Of the records: how many may be in a wrong cell of a table that is called accurate, or rough."""

NOT_MEASURED, NOISE, UNKNOWN, ROUGH, ACCURATE = GRADES = (
    *("not measured", "noise", "unknown"),
    *("rough", "accurate"),
)


def grade(measured: bool, distance: float, coarse: bool = False) -> str:
    """How well a table is known that the records follow.

    ``distance``: from the records to the noisy table, and by noise from there to the exact one, in total
    variation; NaN where either is not known.  The records' own error is at most their sum (triangle
    inequality), where noise is what is expected.  ``coarse``: most records are in one bin of one of the
    columns, and where in it is assumed.
    """
    if not measured:
        return NOT_MEASURED
    if isnan(distance):
        return UNKNOWN
    if distance > ROUGHLY:
        return NOISE
    return ROUGH if coarse or distance > WITHIN else ACCURATE
