"""Dividing records among cells by B-splines, and its effect on a kernel density.

A record at x of [0, 1] gives cell g of G the share B(x G - g - 1/2), where B is the B-spline of degree
p = 7, reflected at both ends, or wrapped around where the ends of the column meet.  The shares are not
negative and add up to one, so replacing a record moves the cells by 2 in L1 for any G and p.  By
Poisson's formula

    sum over g of share_g cos(pi j (g + 1/2)/G) = sum over whole k of (-1)^k sinc(j/(2 G) + k)^(p + 1)
                                                   cos(pi (j + 2 G k) x)

exactly; on a wrapped axis this holds for even j, and for sines too.  The term k = 0 is the function
times ``kept``, and sums are divided by this factor.  The other terms are at most ``strange`` times a
cosine, for any record, and fall like (j/(2 G - j))^(p + 1).  More cells reduce them but add noise,
because a coefficient adds up all G cells.  Linear sharing, p = 1, would need many more cells for the
same accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.releases.densities.basis import Basis

DEGREE = 7
FINER = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0)
"""The numbers of cells per bandwidth that are considered."""

IMAGES = 9
"""Terms up to this k are summed; an integral bounds the rest."""

SMALL = 8.0
"""In the choice of cells, a bound of approximation errors counts like noise eight times as large: then
bands, which add it to the noise, hardly exceed their stated coverage."""


def shares(
    codes: Integers, fine: int, wide: int, periodic: bool = False
) -> tuple[Integers, Floats]:
    """For records in fine cells (k,) along one axis: wide cells, and their shares (k, DEGREE + 1).

    If both grids have the same size, each record is entirely in its own cell.
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
    if periodic:
        return cells % wide, np.stack(values, axis=1)
    cells %= 2 * wide  # reflection: a circle of twice as many cells, folded
    return np.where(cells < wide, cells, 2 * wide - 1 - cells), np.stack(values, axis=1)


@lru_cache(maxsize=4096)
def _factors(basis: type[Basis], fine: int, wide: int) -> tuple[Floats, Floats]:
    j = basis.frequency(np.arange(len(basis.line(wide, 1.0))))
    if fine == wide:
        return np.ones(len(j)), np.zeros(len(j))
    u, power = j / (2 * wide), DEGREE + 1
    kept = np.sinc(u) ** power
    k = np.arange(1, IMAGES + 1)[:, None]
    images = np.abs(np.sinc(u + k)) ** power + np.abs(np.sinc(u - k)) ** power
    # |sinc(u + k)| <= sin(pi u) / (pi (|k| - u)), u < 1/2; a sum over k > K is below its integral.
    rest = 2 * (np.sin(np.pi * u) / np.pi) ** power / DEGREE / (IMAGES - 0.5) ** DEGREE
    strange = (images.sum(axis=0) + rest) / kept
    strange[0] = 0.0  # the shares add up to one
    return kept, strange


def kept(basis: type[Basis], fine: int, wide: int) -> Floats:
    """The factor that sharing puts on each function of one axis, for any x."""
    return _factors(basis, fine, wide)[0]


def strange(basis: type[Basis], fine: int, wide: int) -> Floats:
    """A bound of the error that sharing adds to a cosine (or it and its sine), divided by ``kept``."""
    return _factors(basis, fine, wide)[1]


def best_cells(
    basis: type[Basis], fine: Sequence[int], bandwidths: Sequence[float], noise: float
) -> tuple[int, ...]:
    """The number of cells along each axis with the smallest worst-case error: public.

    ``noise``: standard deviation of the noise in the share of one cell.  A grid that is coarser than
    these cells, or hardly finer, may be used unchanged: sharing would blur more than it saves.
    """
    found = []
    for finer, as_it_is in product(FINER, (1.0, 1.5)):
        wide = [math.ceil(finer / h) for h in bandwidths]
        cells = tuple(n if n < as_it_is * w else w for n, w in zip(fine, wide, strict=True))
        exact = alone = variance = 1.0
        for n, w, h in zip(fine, cells, bandwidths, strict=True):
            lambdas, height = basis.line(w, h), 2 / basis.half_turns
            highest, _ = basis.kernel_extremes(h)
            left = height * float(lambdas @ strange(basis, n, w))
            left += max(highest - 1 - height * float(lambdas[1:].sum()), 0.0)
            exact, alone = exact * highest, alone * (highest + left)
            variance *= w * float(((lambdas / kept(basis, n, w)) ** 2).sum())
        error = math.hypot(noise * math.sqrt(variance), SMALL * (alone - exact))
        found.append((error, cells))
    return min(found)[1]


def most_cells(fine: Sequence[int], bandwidths: Sequence[float]) -> int:
    """The largest best number of cells at these bandwidths or wider ones, for any noise."""
    return math.prod(
        min(n, math.ceil(1.5 * math.ceil(max(FINER) / h)))
        for n, h in zip(fine, bandwidths, strict=True)
    )
