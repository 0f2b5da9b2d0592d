"""How columns are compressed: the number of groups, and the distribution of noise over their tables.

Everything follows from public sizes, so it is known before anything is opened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Axis, in_order
from dpcore.domain.domain import Domain
from dpcore.mechanisms.grouping import least_groups
from dpcore.mechanisms.quadrants import Pair, product_norms
from dpcore.mechanisms.rounds import Noise, two_rounds
from dpcore.post.records.columns import RecordColumns
from dpcore.post.tables.margins import Attributes
from dpcore.releases.tables.groups import kinds_of_cells
from dpcore.releases.tables.measured import TableNoise

MOVED = 0.06
"""The share of a pair's records that noise may move, which determines the number of groups."""

PRECISE = 8
"""The largest factor; the others are rounded to whole numbers."""

GROUPS = (9, 32)
"""The fewest and the most groups.  With fewer than nine, records lose more accuracy in the relation of
two numbers than they gain from less noise per cell."""

MORE_CATEGORIES, MOST_CATEGORIES = 4, 64
"""Columns of categories have this many times as many groups, but at most ``MOST_CATEGORIES``:
neighbouring numbers are alike, whereas categories in one group may have nothing in common."""

ON_PRODUCTS = 0.1
"""The part of the second round's precision for sums of products."""

ON_COMPARISONS = 0.05
"""The part of the second round's precision for tables of relations (``compared``)."""

MANY = 4
"""The fewest values of a column in a sum of products; with fewer, a table shows the relation as well."""

FREE = 5
"""Every wide column has this many groups more than rules, nested groups and null require: with rules
about ages of 15, 16, 17 and 18, nine groups leave few for all adults."""


def usual_groups(
    domain: Domain,
    columns: RecordColumns,
    rows: int,
    share: Budget,
    sets: tuple[Attributes, ...],
    noise: TableNoise,
    *,
    first_share: Fraction,
    adjacency: Adjacency,
) -> int | None:
    """The number of groups that the noise in a pair allows; None if no column has more cells.

    With k groups a pair has k^2 cells, and noise moves about 0.4 k^2 stddev / rows of its records to
    wrong cells; k keeps this near ``MOVED``.
    """
    tables = sets or columns.pairs
    # The number of cells does not change the noise, so 1 will do.
    alone, together = (1, (1,) * len(domain.axes)), (1, (1,) * len(tables))
    alike = noise_of_rounds(share, noise, first_share, adjacency, alone, together)[1].stddev

    def moved(groups: int) -> float:
        times = multiples_of_tables(KeptGroups.usual(groups).cells(domain, tables), noise)
        cost = _norm(times, noise) / len(times)
        own = alike * (cost**0.5 if noise == "discrete-gaussian" else cost) / max(times)
        return 0.4 * groups**2 * own / rows

    few, many = GROUPS
    groups = next((k for k in range(many, few, -1) if moved(k) <= MOVED), few)
    # Rules may require more groups, with which fewer columns are wide.
    while least := [
        FREE + least_groups(kinds_of_cells(i, axis, columns), in_order(axis))
        for i, axis in enumerate(domain.axes)
        if axis.size > KeptGroups.usual(groups).of(axis)
    ]:
        if max(least) <= groups:
            return groups
        groups = max(least)
    return None


class KeptGroups(NamedTuple):
    """The number of groups of a wide column: if its cells are in order, and if they are not."""

    in_order: int
    categories: int

    @classmethod
    def usual(cls, keep: int) -> KeptGroups:
        return cls(keep, usual_categories(keep))

    def of(self, axis: Axis) -> int:
        return self.in_order if in_order(axis) else self.categories

    def cells(self, domain: Domain, tables: Sequence[Attributes]) -> list[int]:
        """The number of cells of each table over groups."""
        sizes = [min(axis.size, self.of(axis)) for axis in domain.axes]
        return [math.prod(sizes[a] for a in columns) for columns in tables]


def usual_categories(keep: int) -> int:
    """The number of groups of categories that suits ``keep`` groups of numbers."""
    return max(keep, min(MORE_CATEGORIES * keep, MOST_CATEGORIES))


def noise_of_rounds(
    share: Budget,
    noise: TableNoise,
    first_share: Fraction,
    adjacency: Adjacency,
    alone: tuple[int, tuple[int, ...]],
    together: tuple[int, tuple[int, ...]],
    products: tuple[Pair, ...] = (),
) -> tuple[Noise, Noise]:
    """The noise of both rounds.

    ``alone``, ``together``: the number of cells of a round, and for each table the factor that
    multiplies its counts; ``products``: the pairs whose products the second round also sums.
    """
    norms = product_norms(products)
    first = alone[0], _sensitivity(adjacency, noise, alone[1])
    again = together[0] + len(products), _sensitivity(adjacency, noise, together[1], norms)
    return two_rounds(share, noise, (first_share, 1 - first_share), first, again)


def _sensitivity(
    adjacency: Adjacency,
    noise: TableNoise,
    times: tuple[int, ...],
    products: tuple[int, int] = (0, 0),
) -> Fraction:
    """The sensitivity of tables with multiplied counts: in the L1 norm, or squared in the L2 norm.

    ``products``: the squared norms that sums of products add for two records' difference, and for one.
    """
    norm = adjacency.squared if noise == "discrete-gaussian" else adjacency.sensitivity
    present = Fraction(_norm(times, noise))
    return norm(moved=2 * present + products[0], present=present + products[1])


def paired_numbers(
    domain: Domain, tables: Sequence[Attributes], noise: TableNoise, keep: int
) -> tuple[Pair, ...]:
    """The pairs of ordered columns whose products are summed: with many values, at least one wide.

    Laplace noise would cost too much: it is priced by the sum over all pairs.
    """
    if noise != "discrete-gaussian":
        return ()
    return tuple(
        attributes
        for attributes in tables
        if len(attributes) == 2
        and all(_many(domain.axes[a]) for a in attributes)
        and max(domain.shape[a] for a in attributes) > keep
    )


def _many(axis: Axis) -> bool:
    return in_order(axis) and axis.size - axis.nullable >= MANY


def beside_products(times: tuple[int, ...], products: Sequence[Pair]) -> tuple[int, ...]:
    """The factors of tables, multiplied so that the products get ``ON_PRODUCTS`` of the precision."""
    if not products:
        return times
    wanted = product_norms(products)[1] * (1 - ON_PRODUCTS) / ON_PRODUCTS
    more = max(1, round(math.sqrt(wanted / sum(each**2 for each in times))))
    return tuple(more * each for each in times)


def factor_of_comparisons(times: Sequence[int], number: int) -> int:
    """The factor of each of ``number`` tables of relations beside tables with these factors, so that
    relations get ``ON_COMPARISONS`` of the precision."""
    wanted = ON_COMPARISONS / (1 - ON_COMPARISONS) * sum(each**2 for each in times)
    return max(1, round(math.sqrt(wanted / max(number, 1))))


def _norm(times: tuple[int, ...], noise: TableNoise) -> int:
    """The norm of one record's contribution to the tables, squared for Gaussian noise."""
    return sum(each**2 if noise == "discrete-gaussian" else each for each in times)


@lru_cache(maxsize=64)
def _multiples(cells: tuple[int, ...], noise: TableNoise) -> tuple[int, ...]:
    power = 1 / 3 if noise == "discrete-gaussian" else 1 / 2
    found = [max(1, round(PRECISE * (each / max(cells)) ** power)) for each in cells]
    return tuple(each // math.gcd(*found) for each in found)


def multiples_of_tables(cells: Sequence[int], noise: TableNoise) -> tuple[int, ...]:
    """The factors that multiply the counts of tables, so that the sum of their errors is smallest.

    Noise of deviation s in c cells gives an error proportional to c s.  With s proportional to 1/m and
    the sum of m^2 fixed (the sum of m for Laplace noise), the total error is smallest for m
    proportional to c^(1/3) (or c^(1/2)).
    """
    return _multiples(tuple(cells), noise)
