"""Grades how accurately a release determines a table that synthetic records follow."""

from collections.abc import Mapping
from math import isnan

from schemas.releases.base import listed

WITHIN, ROUGHLY = 0.1, 0.3
"""The largest errors of tables graded accurate and rough: records in a wrong cell, as a fraction of the
records outside the table's largest cell."""

FEWEST = 0.05
"""Records outside the largest cell count as at least this fraction. So if nearly all are in that cell,
a table with an error of half a per cent of the records is accurate."""

GRADES = ("not measured", "noise", "unknown", "rough", "accurate")
NOT_MEASURED, NOISE, UNKNOWN, ROUGH, ACCURATE = GRADES


def grade(measured: bool, distance: float, outside: float = 1.0, coarse: bool = False) -> str:
    """The grade of a table that the records follow.

    ``distance``: total variation between the records and the noisy table, plus the total variation that
    noise is expected to cause between the noisy and the exact table; NaN if either is unknown. By the
    triangle inequality the error of the records is at most this sum, if noise is as expected.
    ``outside``: the share of the records outside the table's largest cell. Errors are relative to it: if
    95 of 100 people say no to two questions, even a table that is wrong about all others is within a
    tenth of all records. ``coarse``: most records are in one bin of a column, and their positions inside
    it are assumed.
    """
    if not measured:
        return NOT_MEASURED
    if isnan(distance):
        return UNKNOWN
    relative = distance / max(outside, FEWEST)
    if relative > ROUGHLY:
        return NOISE
    return ROUGH if coarse or relative > WITHIN else ACCURATE


def graded(numbers: Mapping[str, int]) -> str:
    """Numbers of tables by grade, in words.

    >>> graded({"noise": 21, "rough": 1})
    '1 is rough and 21 are noise'
    """
    best = [(n, each) for each in GRADES[::-1] if (n := numbers.get(each, 0))]
    return listed([f"{n} {'is' if n == 1 else 'are'} {each}" for n, each in best], " and ")
