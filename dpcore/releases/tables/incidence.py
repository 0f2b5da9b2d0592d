"""Which sets of columns lie inside which tables, for thousands of tables at once.

>>> inside = incidence((2, 3, 1), ((0, 1), (1, 2)))
>>> inside.subsets
((), (0,), (1,), (0, 1))
>>> list(zip(inside.tables.tolist(), inside.inside.tolist()))
[(0, 0), (1, 0), (0, 1), (0, 2), (1, 2), (0, 3)]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.tables.margins import Attributes


@dataclass(frozen=True, eq=False)
class Incidence:
    """All pairs of a table and a set of columns inside it; columns of one cell are left out.

    ``subsets`` ascend by their number of columns; ``tables``, ``inside`` (n,): the pairs, as positions
    of a table and of a subset; ``whole`` (k,): the position of each table itself among the subsets.
    """

    sizes: tuple[int, ...]
    subsets: tuple[Attributes, ...]
    tables: Integers
    inside: Integers
    whole: Integers

    @cached_property
    def cells(self) -> Floats:
        """The number of cells (subsets,) of each subset."""
        return self.product(np.array(self.sizes, dtype=np.float64))

    @cached_property
    def centring(self) -> Floats:
        """For each subset (subsets,), the diagonal of the matrix that centres each axis."""
        return self.product(1 - 1 / np.array(self.sizes, dtype=np.float64))

    @cached_property
    def share(self) -> Floats:
        """For each pair (n,), the weight of the residual's variance in a table cell's variance."""
        rest = self.cells[self.whole][self.tables] / self.cells[self.inside]
        return np.asarray(self.centring[self.inside] / rest**2)

    def product(self, of_column: Floats) -> Floats:
        """For each subset (subsets,), the product of one number (columns,) for each of its columns."""
        return np.concatenate([np.prod(of_column[listed], axis=1) for listed in self.by_order])

    @cached_property
    def orders(self) -> Integers:
        """The number of columns (subsets,) of each subset."""
        return np.array([len(subset) for subset in self.subsets])

    @cached_property
    def by_order(self) -> list[Integers]:
        """For each number of columns r, the subsets (m, r) with this many columns."""
        several = (
            (r, [subset for subset in self.subsets if len(subset) == r])
            for r in range(int(self.orders[-1]) + 1)
        )
        return [np.array(some, dtype=np.int64).reshape(len(some), r) for r, some in several]


@lru_cache(maxsize=16)
def incidence(sizes: tuple[int, ...], tables: tuple[Attributes, ...]) -> Incidence:
    """The incidence of all subsets of tables that have few columns each."""
    useful = [tuple(a for a in table if sizes[a] > 1) for table in tables]
    by_order: dict[int, list[int]] = {}
    for i, table in enumerate(useful):
        by_order.setdefault(len(table), []).append(i)
    of: list[list[Integers]] = [[] for _ in range(max(by_order) + 1)]
    columns: list[list[Integers]] = [[] for _ in of]
    for order, places in by_order.items():
        listed = np.array([useful[i] for i in places], dtype=np.int64).reshape(len(places), order)
        for chosen in chain.from_iterable(combinations(range(order), r) for r in range(order + 1)):
            of[len(chosen)].append(np.array(places))
            columns[len(chosen)].append(listed[:, list(chosen)])
    subsets: list[Attributes] = []
    inside, whole = [], np.zeros(len(tables), dtype=np.int64)
    orders = np.array([len(table) for table in useful])
    for r, (some, listed) in enumerate(zip(of, map(np.concatenate, columns), strict=True)):
        found, place = np.unique(listed, axis=0, return_inverse=True)
        inside.append(place.ravel() + len(subsets))
        subsets += map(tuple, found.tolist())
        among = np.concatenate(some)
        whole[among[orders[among] == r]] = inside[-1][orders[among] == r]
    pairs = np.concatenate([np.concatenate(some) for some in of])
    return Incidence(sizes, tuple(subsets), pairs, np.concatenate(inside), whole)
