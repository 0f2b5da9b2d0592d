"""How well a table that synthetic records follow is known, in a word."""

from math import isnan

WITHIN = 0.1
"""Of the records: how many may be in a wrong cell of a table that is called accurate."""

NOT_MEASURED, WEAK, UNKNOWN, ACCURATE = GRADES = "not measured", "weak", "unknown", "accurate"


def grade(measured: bool, distance: float) -> str:
    """How well a table is known that the records follow.

    ``distance``: from the records to the noisy table, and by noise from there to the exact one, in total
    variation; NaN where either is not known.  The records' own error is at most their sum (triangle
    inequality), where noise is what is expected.
    """
    if not measured:
        return NOT_MEASURED
    if isnan(distance):
        return UNKNOWN
    return ACCURATE if distance <= WITHIN else WEAK
