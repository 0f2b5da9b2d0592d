"""Into how many groups the cells of wide columns are merged: few beside each other, more beside others.

A wide column has two *attributes* in the tables of groups, where both serve:

    columns         income (wide)        age (wide)           sex (2 cells)
    attributes      9 groups, 27 groups  9 groups, 27 groups  2 cells
    income x age    9        x           9
    income x sex              27         x                    2

The few groups are made of the many, so the one attribute follows from the other in every record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.axes import Axis, Bins, in_order
from dpcore.domain.domain import Domain
from dpcore.mechanisms.compressed_margins import Merged, counted_columns
from dpcore.mechanisms.grouping import kinds_of
from dpcore.post.records.nested import Nested
from dpcore.post.records.rules import Rule
from dpcore.post.tables.margins import Attributes

FINER = 3
"""Times as many groups beside narrow columns, where the table has at most twice the cells of others."""


@dataclass(frozen=True)
class Granularity:
    """``merged``: the wide columns; ``tables``: the attributes of each table; ``shape``: their sizes."""

    merged: tuple[Merged, ...]
    tables: tuple[Attributes, ...]
    shape: tuple[int, ...]
    columns: tuple[int, ...]
    """The column of each attribute."""

    @classmethod
    def of(
        cls,
        domain: Domain,
        tables: Sequence[Attributes],
        keep: int,
        rules: Sequence[Rule],
        nested: Sequence[Nested],
    ) -> Granularity:
        """``tables``: the columns of each; columns of conditions or groups have one attribute."""
        single = {a for rule in rules for a, _ in rule.when + rule.then}
        single |= {a for each in nested for a in (each.group, each.detail)}
        shape = domain.shape
        wide = {i for i, size in enumerate(shape) if size > keep}

        def finer(columns: Attributes) -> set[int]:
            """The column of a pair that is counted in more groups."""
            found, others = {*columns} & wide - single, {*columns} - wide
            few = all(FINER * shape[other] <= 2 * keep for other in others)
            return found if len(columns) == 2 and others and few else set()

        used: dict[int, set[int]] = {i: set() for i in wide}
        for columns in tables:
            for i in {*columns} & wide:
                used[i].add(min(FINER * keep, shape[i]) if i in finer(columns) else keep)
        merged = tuple(
            Merged(
                i,
                tuple(kinds_of_cells(i, domain.axes[i], rules, nested).tolist()),
                in_order(domain.axes[i]),
                tuple(sorted(used[i])) or (keep,),
            )
            for i in sorted(wide)
        )
        columns_of = counted_columns(len(shape), merged)
        first = {i: columns_of.index(i) for i in range(len(shape))}
        several = {each.position for each in merged if len(each.keep) > 1}
        attributes = tuple(
            tuple(first[i] + (i in several and i in finer(columns)) for i in columns)
            for columns in tables
        )
        kept = {each.position: each.keep for each in merged}
        sizes = [size for i, n in enumerate(shape) for size in kept.get(i, (n,))]
        return cls(merged, attributes, tuple(sizes), columns_of)

    @property
    def cells(self) -> list[int]:
        """Of each table."""
        return [math.prod(self.shape[a] for a in attributes) for attributes in self.tables]

    @cached_property
    def first(self) -> tuple[int, ...]:
        """Of each column the attribute of fewest groups."""
        return tuple(self.columns.index(i) for i in range(self.columns[-1] + 1))

    @cached_property
    def last(self) -> tuple[int, ...]:
        """Of each column the attribute of most groups."""
        return (*(first - 1 for first in self.first[1:]), len(self.columns) - 1)


def kinds_of_cells(
    position: int, axis: Axis, rules: Sequence[Rule], nested: Sequence[Nested]
) -> Integers:
    """(size,) which cells of a column may share a group."""
    # A point mass stays alone: a wider bin would not hold it where another one begins with it.
    points = axis.points if isinstance(axis, Bins) else ()
    conditions: list[tuple[int, ...]] = [(point,) for point in points]
    if isinstance(axis, Bins) and axis.masses:
        conditions += [(int(np.searchsorted(axis.edges, m, "right")) - 1,) for m in axis.masses]
    stated = [condition for rule in rules for condition in rule.when + rule.then]
    conditions += [cells for at, cells in stated if at == position]
    for each in nested:
        of = np.asarray(each.of)
        if each.detail == position:
            conditions += [tuple(np.flatnonzero(of == group).tolist()) for group in np.unique(of)]
    return kinds_of(axis.size, axis.nullable, conditions)
