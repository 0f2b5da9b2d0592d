"""What every synthetic record has in common: its columns, and the facts about them that always hold.

>>> child = Rule(when=((0, (0,)),), then=((1, (2,)),))
>>> columns = RecordColumns((2, 3, 2), in_order={0: 2, 1: 2}, rules=(child,))
>>> columns.pairs
((0, 1), (0, 2), (1, 2))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from dpcore.arrays import Booleans
from dpcore.domain.axes import in_order
from dpcore.domain.domain import Domain
from dpcore.post.records.nested import Nested, tied
from dpcore.post.records.rules import Rule
from dpcore.post.tables.margins import Attributes


@dataclass(frozen=True)
class RecordColumns:
    """The k columns of records, as public facts.

    ``sizes``: the number of cells of each column; ``in_order``: for each column with ordered values,
    its number of cells without the cell of null, which is the last;
    ``rules``: rules that all records obey; ``nested``: columns that others determine in all records.
    """

    sizes: Sequence[int]
    in_order: Mapping[int, int] = field(default_factory=dict)
    rules: Sequence[Rule] = ()
    nested: Sequence[Nested] = ()

    @classmethod
    def of(
        cls, domain: Domain, rules: Sequence[Rule] = (), nested: Sequence[Nested] = ()
    ) -> RecordColumns:
        ordered = {i: a.size - a.nullable for i, a in enumerate(domain.axes) if in_order(a)}
        return cls(domain.shape, ordered, rules, nested)

    @property
    def pairs(self) -> tuple[Attributes, ...]:
        """All pairs in which no column determines the other; if there is none, each column by itself."""
        every = range(len(self.sizes))
        free = tuple(pair for pair in combinations(every, 2) if not tied(pair, self.nested))
        return free or tuple((column,) for column in every)

    @property
    def forms(self) -> Booleans:
        """The cells allowed by each value of one column, such as a unit's size, which limits its
        members.

        The result is (values, D), over the concatenated cells of all columns, by the rules about that
        column only.  The column is the one that leaves a single cell to most other columns.  If none
        leaves a single cell to at least two, there is one form (1, D), which allows all cells.
        """
        starts = np.cumsum([0, *self.sizes])
        best, most = np.ones((1, starts[-1]), dtype=bool), 2
        for column, size in enumerate(self.sizes):
            allowed = np.ones((size, starts[-1]), dtype=bool)
            allowed[:, starts[column] : starts[column + 1]] = np.eye(size, dtype=bool)
            for rule in self.rules:
                if len(rule.when) == 1 and rule.when[0][0] == column:
                    for other, codes in rule.then:
                        outside = starts[other] + np.setdiff1d(np.arange(self.sizes[other]), codes)
                        allowed[np.ix_(rule.when[0][1], outside)] = False
            left = np.add.reduceat(allowed, starts[:-1], axis=1)
            left[:, column] = 0
            alone = int(((left == 1) & (np.asarray(self.sizes) > 1)).any(axis=0).sum())
            if alone >= most and left[:, np.arange(len(self.sizes)) != column].all():
                best, most = allowed, alone + 1
        return best
