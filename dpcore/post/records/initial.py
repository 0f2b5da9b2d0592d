"""Records from which a fit starts: wide margins drawn jointly, all other attributes independently.

A search that changes one value of one record at a time finds the associations of pairs when it starts
from independent attributes, and adds few others.  But it cannot reach isolated combinations of values,
as a wide table may have: every single change on the way would make the fit worse.  So the attributes
of a margin of three or more are drawn from that table, given those already drawn:

    margins (0,1,2), (1,2,3), (4,5)      0,1,2 jointly; 3 given 1 and 2; 4; 5

The search cannot pass through records that break a rule either.  So if a rule relates two attributes,
they are also drawn jointly, or one given the other, the most informative pairs first.

>>> import numpy as np
>>> table = np.zeros((3, 3, 3))
>>> table[0, 0, 0], table[2, 2, 2] = 30.0, 20.0
>>> columns, noisy = RecordColumns((3, 3, 3)), [Margin((0, 1, 2), table, 1.0)]
>>> codes = initial_records(columns, noisy, 50, np.random.default_rng(7), 50)
>>> np.unique(codes, axis=0).tolist()
[[0, 0, 0], [2, 2, 2]]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.nested import beside_groups
from dpcore.post.records.rules import Rule, clear_forbidden_cells
from dpcore.post.records.systematic import draw_systematically
from dpcore.post.tables.consistency import make_consistent
from dpcore.post.tables.margins import Margin, cells, one_way, packed
from dpcore.post.tables.simplex import project_to_simplex


def initial_records(
    columns: RecordColumns,
    margins: Sequence[Margin],
    rows: int,
    generator: np.random.Generator,
    total: float,
) -> Integers:
    """Records near the one-way margins and the widest margins: (rows, k) codes.

    ``margins``: noisy or consistent; ``total``: their sum.  Every attribute must be in a margin.  All
    draws are systematic.  A margin of all the attributes is met within one record per cell.  Records
    may break rules, but few break a rule about a pair that is among the margins.  Details are drawn
    given the groups drawn before; the other groups follow from the details.
    """
    sizes = columns.sizes
    codes = np.zeros((len(sizes), rows), dtype=np.int64)
    consistent = make_consistent(sizes, margins, total)
    drawn: set[int] = set()
    ruled = _ruled(consistent, columns.rules)
    joint = chain(_wide(sizes, consistent), _connected(ruled, drawn))
    for margin in chain(joint, one_way(sizes, consistent)):
        fresh = tuple(a for a in margin.attributes if a not in drawn)
        if not fresh:
            continue
        table = project_to_simplex(margin.table.ravel(), total).reshape(margin.table.shape)
        # After the projection, which would otherwise give excluded cells a share again.
        possible = clear_forbidden_cells(margin._replace(table=table), columns.rules)
        attributes, table, _ = beside_groups(possible, drawn, columns.nested, sizes)
        given = tuple(a for a in attributes if a in drawn)
        order = [attributes.index(a) for a in given + fresh]
        conditional = table.transpose(order).reshape(cells(given, sizes), cells(fresh, sizes))
        values = draw_systematically(packed(codes, given, sizes), conditional, generator)
        shape = tuple(sizes[a] for a in fresh)
        for attribute, column in zip(fresh, np.unravel_index(values, shape), strict=True):
            codes[attribute] = column
        drawn.update(fresh)
        for each in columns.nested:
            if each.detail in drawn and (each.group not in drawn or each.detail in fresh):
                codes[each.group] = np.asarray(each.of)[codes[each.detail]]
                drawn.add(each.group)
    return np.ascontiguousarray(codes.T)


def _ruled(margins: Sequence[Margin], rules: Sequence[Rule]) -> list[Margin]:
    """The pairs that a rule relates, without excluded cells, the most informative first."""
    tied = {frozenset(pair) for rule in rules for pair in combinations(rule.attributes, 2)}
    found = [
        clear_forbidden_cells(margin, rules)
        for margin in margins
        if len(margin.attributes) == 2 and frozenset(margin.attributes) in tied
    ]
    return sorted(found, key=lambda m: -_information(np.maximum(m.table, 0.0)))


def _connected(margins: list[Margin], drawn: set[int]) -> Iterator[Margin]:
    """The margins in order, but those with an attribute in ``drawn``, which grows, come first."""
    waiting = list(margins)
    while waiting := [m for m in waiting if not drawn.issuperset(m.attributes)]:
        yield next((m for m in waiting if drawn & set(m.attributes)), waiting[0])


def _wide(sizes: Sequence[int], margins: Sequence[Margin]) -> list[Margin]:
    """The margins of at least three attributes, or of all attributes, the widest first."""
    widths = [sum(sizes[a] > 1 for a in margin.attributes) for margin in margins]
    enough = min(3, sum(size > 1 for size in sizes))
    wide = [(-width, i) for i, width in enumerate(widths) if width >= enough]
    return [margins[i] for _, i in sorted(wide)]


def _information(table: Floats) -> float:
    """The mutual information (nats) of a two-way table without negative counts."""
    joint = table / max(table.sum(), 1e-300)
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    occupied = joint > 0
    return float(np.sum(joint[occupied] * np.log(joint[occupied] / independent[occupied])))
