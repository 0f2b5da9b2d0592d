"""Sharing records out among cells by B-splines, and what that leaves of a kernel density (METHODS c).

A record at x of [0, 1] gives cell g of G the share B(x G - g - 1/2), where B is the B-spline of degree
p = 7, reflected at both ends.  The shares are not negative and add up to one, so replacing a record
moves the cells by 2 in L1 for any G and p.  By Poisson's formula

    sum over g of share_g cos(pi j (g + 1/2)/G) = sum over whole k of (-1)^k sinc(j/(2 G) + k)^(p + 1)
                                                   cos(pi (j + 2 G k) x)

exactly.  k = 0 is the cosine itself times ``kept``, by which it is divided.  The rest is an error of at
most ``strange`` of a cosine, for any record; it falls like (j/(2 G - j))^(p + 1).  More cells leave less
of it and cost noise, because a coefficient adds up all G cells.  Linear sharing, p = 1, would need many
more cells for the same accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from dpcore.arrays import Floats, Integers

DEGREE = 7
FINER = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0)
"""Cells for each bandwidth that are considered."""

IMAGES = 9
"""k up to this is summed, and what lies beyond is bounded by an integral."""

SMALL = 8.0
"""A bound of what is left out weighs as much as noise eight times as large: so bands that add it to
the noise hold little more often than they say."""


def shares(codes: Integers, fine: int, wide: int) -> tuple[Integers, Floats]:
    """Along one axis, for records in fine cells (k,): wide cells and shares (k, DEGREE + 1).

    Grids of one size are the same grid: a record is all in its own cell.
    """
    if fine == wide:
        return codes[:, None], np.ones((len(codes), 1))
    position = (codes + 0.5) / fine * wide - 0.5
    first = np.floor(position)
    part = position - first
    values = [np.ones(len(codes))]
    for d in range(1, DEGREE + 1):  # Cox and de Boor, on equal knots
        saved = np.zeros(len(codes))
        for r in range(d):
            term = values[r] / d
            values[r] = saved + (r + 1 - part) * term
            saved = (part + d - 1 - r) * term
        values.append(saved)
    cells = first.astype(np.int64)[:, None] + np.arange(DEGREE + 1) - (DEGREE - 1) // 2
    cells %= 2 * wide  # reflection: a circle of twice as many cells, folded
    return np.where(cells < wide, cells, 2 * wide - 1 - cells), np.stack(values, axis=1)


@lru_cache(maxsize=4096)
def _factors(fine: int, wide: int) -> tuple[Floats, Floats]:
    if fine == wide:
        return np.ones(wide), np.zeros(wide)
    u, power = np.arange(wide) / (2 * wide), DEGREE + 1
    kept = np.sinc(u) ** power
    k = np.arange(1, IMAGES + 1)[:, None]
    images = np.abs(np.sinc(u + k)) ** power + np.abs(np.sinc(u - k)) ** power
    # |sinc(u + k)| <= sin(pi u) / (pi (|k| - u)), u < 1/2; a sum over k > K is below its integral.
    rest = 2 * (np.sin(np.pi * u) / np.pi) ** power / DEGREE / (IMAGES - 0.5) ** DEGREE
    strange = (images.sum(axis=0) + rest) / kept
    strange[0] = 0.0  # the shares add up to one
    return kept, strange


def kept(fine: int, wide: int) -> Floats:
    """(wide,) the factor that sharing puts on cos(pi j x), for any x."""
    return _factors(fine, wide)[0]


def strange(fine: int, wide: int) -> Floats:
    """(wide,) a bound of what sharing adds to cos(pi j x), after division by ``kept``."""
    return _factors(fine, wide)[1]


def best_cells(fine: Sequence[int], bandwidths: Sequence[float], noise: float) -> tuple[int, ...]:
    """Cells along each axis of the least error in the worst case: public.

    ``noise``: standard deviation of the noise in the share of one cell.  A grid that is coarser than
    the cells, or hardly finer, may be used as it is: sharing would blur more than it saves.
    """
    found = []
    for finer, as_it_is in product(FINER, (1.0, 1.5)):
        wide = [math.ceil(finer / h) for h in bandwidths]
        cells = tuple(n if n < as_it_is * w else w for n, w in zip(fine, wide, strict=True))
        exact = alone = variance = 1.0
        for n, w, h in zip(fine, cells, bandwidths, strict=True):
            j = np.arange(w)
            lambdas = np.exp(-0.5 * (np.pi * h * j) ** 2)
            all_j = np.arange(math.ceil(9 / (math.pi * h)) + 1)
            highest = 2 * float(np.exp(-0.5 * (np.pi * h * all_j) ** 2).sum()) - 1
            left = 2 * float(lambdas @ strange(n, w))
            left += max(highest + 1 - 2 * float(lambdas.sum()), 0.0)
            exact, alone = exact * highest, alone * (highest + left)
            variance *= w * float(((lambdas / kept(n, w)) ** 2).sum())
        error = math.hypot(noise * math.sqrt(variance), SMALL * (alone - exact))
        found.append((error, cells))
    return min(found)[1]


def most_cells(fine: Sequence[int], bandwidths: Sequence[float]) -> int:
    """No more than these are best, whatever the noise, at these bandwidths or wider ones."""
    return math.prod(
        min(n, math.ceil(1.5 * math.ceil(max(FINER) / h)))
        for n, h in zip(fine, bandwidths, strict=True)
    )
