r"""One estimate of a table from measurements in different cells of the same columns.

One release counts ages in six bins and another in four.  Both are sums over the cells between the edges
of either:

    six bins     |--|--|--|--|--|--|         S_1
    four bins    |-----|--|-----|--|         S_2      rows of 0 and 1: which refined cells a bin adds up
    refined      |--|--|--|--|--|--|         x

A component r_T of a part (``consistency``) is a linear function A_T x of the refined counts x, with
noise of variance v_T times the centring that A_T contains.  So the information about x is

    M = sum over parts and T of A_T' A_T / v_T,          b = sum over parts and T of A_T' r_T / v_T,

where T runs over the columns of the table; and the estimate of the table t = S x is S M^+ b, the
generalised least squares estimate from these components, with covariance S M^+ S'.  A public total n
fixes x up to contrasts: x = n / cells + Q z, which has M_z = Q' M Q and b_z = Q' (b - M 1 n / cells).

>>> import numpy as np
>>> from dpcore.post.tables.margins import Margin
>>> fine = Agreement((3,), [Margin((0,), np.array([4.0, 4, 2]), 1.0)], None)
>>> coarse = Agreement((2,), [Margin((0,), np.array([10.0, 2]), 1.0)], None)
>>> ages = Bins("age", (0.0, 20.0, 40.0, 90.0)), Bins("age", (0.0, 40.0, 90.0))
>>> both = Refined(ages[:1], [(fine, ages[:1]), (coarse, ages[1:])])
>>> both.estimate([fine, coarse]).round(3).tolist(), both.variances.round(3).tolist()
([4.667, 4.667, 2.0], [0.667, 0.667, 0.5])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
from scipy.linalg import helmert

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis, Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.post.tables.consistency import Agreement, Component, common_total
from dpcore.post.tables.margins import Attributes

MOST_REFINED = 1024
"""The most cells of a refined table: the work grows with their cube."""

NEGLIGIBLE = 1e-10
"""Eigenvalues of M below this share of the largest are taken as zero."""

Part = tuple[Agreement, Sequence[Axis]]
"""An agreement, and the axis of each of its attributes."""


class Refined:
    """The best estimate of a table over ``axes`` from parts that have its columns in any cells.

    Only the parts' variances are used, which are public; ``estimate`` takes parts with numbers.
    ``covariance``: (cells, cells) of the estimate, exact; ``variances``: its diagonal.
    """

    def __init__(self, axes: Sequence[Axis], parts: Sequence[Part]) -> None:
        refined = refinement(axes, [its for _, its in parts])
        self._shape = refined.shape
        self._places = [places(axes, its) for _, its in parts]
        self._sums = [
            {i: _sums(its[a], refined.axes[i]) for i, a in places.items()}
            for (_, its), places in zip(parts, self._places, strict=True)
        ]
        own = _product(list(map(_sums, axes, refined.axes)))
        cells = refined.size
        self._known = common_total(agreement for agreement, _ in parts)
        free = np.eye(cells) if self._known is None else helmert(cells).T
        information = sum(
            (self._squared(part, columns) / component.variance)
            for part, (agreement, _) in enumerate(parts)
            for columns, component in self._components(part, agreement)
        )
        # The parts must determine the table but not every refined cell: M may be singular.
        self._weights = (
            own
            @ free
            @ np.linalg.pinv(free.T @ information @ free, rcond=NEGLIGIBLE, hermitian=True)
            @ free.T
        )
        self._even = (own - self._weights @ information).sum(axis=1) / cells
        self.covariance: Floats = self._weights @ own.T
        self.variances = np.maximum(self.covariance.diagonal(), 0.0)

    def variance_of(self, factors: Floats) -> float:
        """The variance of a sum of the table's cells with these weights (cells,)."""
        return max(float(factors @ self.covariance @ factors), 0.0)

    def estimate(self, agreements: Sequence[Agreement]) -> Floats:
        """The estimate (cells,), or (cells, draws), from the parts in the order of ``parts``."""
        draws = agreements[0].draws
        information: Floats = np.zeros([*self._shape, *draws])
        for part, agreement in enumerate(agreements):
            for columns, component in self._components(part, agreement):
                information += self._on_refined(part, columns, component.table) / component.variance
        total = next((a.total for a in agreements if a.total is not None), 0.0)
        information = information.reshape(-1, *draws)
        even = self._even.reshape(-1, *(1 for _ in draws))
        return np.asarray(self._weights @ information + total * even)

    def _components(
        self, part: int, agreement: Agreement
    ) -> Iterator[tuple[Attributes, Component]]:
        """A part's components for each set of the table's columns, with axes in this order."""
        places = self._places[part]
        columns = [i for i in places if agreement.sizes[places[i]] > 1]
        for number in range(self._known is not None, len(columns) + 1):
            for chosen in combinations(sorted(columns), number):
                attributes = sorted(places[i] for i in chosen)
                found = agreement.component(attributes)
                if found is not None:
                    order = [attributes.index(places[i]) for i in chosen]
                    order += range(len(order), found.table.ndim)
                    yield chosen, found._replace(table=np.transpose(found.table, order))

    def _squared(self, part: int, columns: Attributes) -> Floats:
        """The matrix A_T' A_T."""
        factors = []
        for i, size in enumerate(self._shape):
            sums = self._sums[part][i] if i in columns else np.ones((1, size))
            centred = sums - sums.mean(axis=0) if i in columns else sums
            factors.append(centred.T @ centred)
        return _product(factors)

    def _on_refined(self, part: int, columns: Attributes, table: Floats) -> Floats:
        """The vector A_T' r_T, in the shape of the refined table or with axes of length 1."""
        for axis, i in enumerate(columns):
            table = np.moveaxis(np.tensordot(table, self._sums[part][i], (axis, 0)), -1, axis)
        shape = [size if i in columns else 1 for i, size in enumerate(self._shape)]
        return np.reshape(table, [*shape, *table.shape[len(columns) :]])


def refinement(axes: Sequence[Axis], parts: Sequence[Sequence[Axis]]) -> Domain:
    """The cells between all edges of the axes in the table and in the parts."""
    return Domain(
        tuple(
            _refined(
                [axis, *(its[a] for its in parts for i, a in places(axes, its).items() if i == n)]
            )
            for n, axis in enumerate(axes)
        )
    )


def differ(axes: Sequence[Axis], others: Sequence[Axis]) -> bool:
    """Whether a part has a column of the table in different cells that can be refined."""
    return any(axes[i] != others[a] for i, a in places(axes, others).items())


def places(axes: Sequence[Axis], others: Sequence[Axis]) -> dict[int, int]:
    """For each column of the table that a part has, the position of the attribute in the part."""
    return {
        i: a
        for i, axis in enumerate(axes)
        for a, other in enumerate(others)
        if other == axis or (_divided(axis) and _divided(other) and _range(axis) == _range(other))
    }


def _divided(axis: Axis) -> bool:
    """Whether an axis is cut at stated edges, so that its cells mean the same in all releases."""
    return isinstance(axis, Bins) or (isinstance(axis, Grid) and axis.integer)


def _range(axis: Axis) -> object:
    assert not isinstance(axis, Categories)
    return axis.name, axis.lower, axis.upper, axis.integer, axis.nullable


def _refined(axes: Sequence[Axis]) -> Axis:
    first = axes[0]
    if all(axis == first for axis in axes) or isinstance(first, Categories):
        return first
    edges = Counter[float]()
    for axis in axes:
        if not isinstance(axis, Categories):
            edges |= Counter(axis.edges)  # a point mass is an edge that is listed twice
    return Bins(
        first.name, tuple(sorted(edges.elements())), first.nullable, first.integer, first.step
    )


def _sums(axis: Axis, refined: Axis) -> Floats:
    """The matrix (cells, refined cells): 1 if a cell of the axis contains the refined cell, else 0."""
    if axis == refined or isinstance(axis, Categories) or isinstance(refined, Categories):
        return np.eye(axis.size)
    within = np.searchsorted(axis.starts, refined.starts, side="right") - 1
    if axis.nullable:
        within = np.append(within, axis.size - 1)
    return np.asarray(np.arange(axis.size)[:, None] == within, dtype=np.float64)


def _product(factors: list[Floats]) -> Floats:
    """The Kronecker product of matrices."""
    one: Floats = np.ones((1, 1))
    return reduce(lambda product, factor: np.asarray(np.kron(product, factor)), factors, one)
