"""The Sobol' sequence: points that fill the unit cube evenly, the same on every machine.

The bits of a coordinate are those of the point's number in Gray code, through one direction number each.
In dimension j these follow from a primitive polynomial x^s + a_1 x^(s-1) + ... + 1 over two elements and
from s first numbers m_1 ... m_s (Joe & Kuo 2008, eq. 2; ^ is the sum bit by bit):

    m_k = 2 a_1 m_(k-1) ^ 4 a_2 m_(k-2) ^ ... ^ 2**s m_(k-s) ^ m_(k-s).

SciPy has the same sequence, for many more dimensions, but its import takes a third of a second.

>>> sobol_points(2, 2).tolist()
[[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
"""

import numpy as np

from dpcore.arrays import Floats

BITS = 30

# The polynomial, a bit for each coefficient, and the first numbers of dimensions 2 to 21: Joe & Kuo
# 2008, "new-joe-kuo-6".
DIRECTIONS = (
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
    (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)),
    (91, (1, 1, 1, 15, 21, 21)),
    (97, (1, 3, 1, 13, 27, 49)),
    (103, (1, 1, 1, 15, 7, 5)),
    (109, (1, 3, 1, 15, 13, 25)),
    (115, (1, 1, 5, 5, 19, 61)),
    (131, (1, 3, 7, 11, 23, 15, 103)),
    (137, (1, 3, 7, 13, 13, 15, 69)),
)


def sobol_points(dimensions: int, log_points: int) -> Floats:
    """The first 2^log_points points, unscrambled: (2^log_points, dimensions), from 0 to below 1."""
    if dimensions > len(DIRECTIONS) + 1:
        from scipy.stats import qmc

        found = qmc.Sobol(dimensions, scramble=False).random_base2(log_points)
        return np.asarray(found, dtype=np.float64)
    numbers = np.arange(2**log_points)
    gray = numbers ^ (numbers >> 1)
    points = np.zeros((len(numbers), dimensions), dtype=np.int64)
    for dimension in range(dimensions):
        for bit, first in enumerate(_first_numbers(dimension)[:log_points]):
            points[gray >> bit & 1 == 1, dimension] ^= first << (BITS - 1 - bit)
    return np.asarray(points / 2**BITS)


def _first_numbers(dimension: int) -> list[int]:
    """The odd numbers m_1, m_2, ... of a dimension."""
    if dimension == 0:
        return [1] * BITS
    polynomial, first = DIRECTIONS[dimension - 1]
    degree, numbers = len(first), list(first)
    while len(numbers) < BITS:
        value = numbers[-degree] << degree ^ numbers[-degree]
        for back in range(1, degree):
            if polynomial >> (degree - back) & 1:
                value ^= numbers[-back] << back
        numbers.append(value)
    return numbers
