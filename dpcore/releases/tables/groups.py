"""Groups of cells as an analyst reads them: their cells, and tables that count by group.

Merged bins are one wider bin, published like any other.  A group of categories has a number: the
one-way table of the column lists its categories, and tables of several columns count by group number.

    x.trade            trade    trade_group  noisy_count ...     x.trade.sex    trade_group  sex ...
                       baker    1            120                                1            F
                       smith    2             14                                1            M
                       tinker   2              9                                2            F
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.axes import Axis, Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.mechanisms.grouping import kinds_of
from dpcore.mechanisms.rounds import Noise
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.nested import Nested
from dpcore.post.records.rules import Order, Rule
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.counts.unit import Unit
from dpcore.releases.table import ENDS, Table, TableColumn, Uncertainty, exact_interval

GROUP = "_group"
"""The suffix of a published column of groups."""


def kinds_of_cells(position: int, axis: Axis, columns: RecordColumns) -> Integers:
    """The kinds (size,) of a column's cells; only cells of the same kind may share a group."""
    # A point mass gets its own group: if another bin begins with it, a wider bin would not contain it.
    points = axis.points if isinstance(axis, Bins) else ()
    conditions: list[tuple[int, ...]] = [(point,) for point in points]
    if isinstance(axis, Bins) and axis.masses:
        conditions += [(int(np.searchsorted(axis.edges, m, "right")) - 1,) for m in axis.masses]
    stated = [condition for rule in columns.rules for condition in rule.when + rule.then]
    conditions += [cells for at, cells in stated if at == position]
    for each in columns.nested:
        of = np.asarray(each.of)
        if each.detail == position:
            conditions += [tuple(np.flatnonzero(of == group).tolist()) for group in np.unique(of)]
    return kinds_of(axis.size, axis.nullable, conditions)


def grouped_axis(axis: Axis, groups: Integers) -> Axis:
    """The axis whose cells are groups of an axis's cells; null is the last group.

    ``groups``: (size,) the group of each cell.
    """
    _, first = np.unique(groups, return_index=True)
    if len(first) == axis.size:
        return axis
    inside = len(first) - axis.nullable
    if isinstance(axis, Categories):
        return Categories(axis.name, tuple(range(1, inside + 1)), axis.nullable, axis.ordered)
    # Groups of cells in order are made of neighbours, so their first edges bound them.
    edges = axis.edge(np.append(first[:inside], axis.size - axis.nullable))
    return Bins(axis.name, tuple(edges.tolist()), axis.nullable, axis.integer, axis.step)


def rule_of_groups(rule: Rule, groups: Sequence[Integers]) -> Rule:
    """The rule in terms of groups, none of which straddles a condition.

    Two groups are in order if some of their cells are; ``cells_in_order`` then finds such cells.
    ``groups``: for each column, the group of each cell.
    """
    when, then = (
        tuple((a, tuple(np.unique(groups[a][list(cells)]).tolist())) for a, cells in part)
        for part in (rule.when, rule.then)
    )
    return Rule(when, then, tuple(_order_of_groups(order, groups) for order in rule.orders))


def _order_of_groups(order: Order, groups: Sequence[Integers]) -> Order:
    low, high = groups[order.low], groups[order.high]
    size = int(high.max()) + 1
    least = np.append(high, size)[list(order.least)]
    first = np.full(int(low.max()) + 1, size)
    np.minimum.at(first, low, least)
    return order._replace(least=tuple(first.tolist()))


def nested_groups(nested: Nested, groups: Sequence[Integers]) -> Nested:
    """The nesting for merged cells; each lies in one of the plan's groups."""
    group, detail = groups[nested.group], groups[nested.detail]
    found = np.zeros(int(detail.max()) + 1, dtype=np.int64)
    found[detail] = group[np.asarray(nested.of)]
    return Nested(nested.group, nested.detail, tuple(found.tolist()))


def table_of_groups(
    name: str,
    axis: Axis,
    groups: Integers,
    counts: Integers,
    noise: Noise,
    most: int,
    unit: Unit,
) -> Table:
    """The table of the noisy counts (size,) of one column, with the group of each of its cells (size,).

    ``most``: an upper bound of the exact counts; ``unit``: the counted unit.
    """
    columns = describe_cells(Domain((axis,)))
    if isinstance(axis, Categories):
        (numbers,) = describe_cells(Domain((grouped_axis(axis, groups),)), groups)
        of = f"Number of the group of {axis.name} in tables of several columns"
        columns.append(TableColumn(axis.name + GROUP, numbers.values, of, axis.name))
    ends = exact_interval(counts, noise.half_width, most)
    columns += unit.noisy_columns(counts, noise.stddev, ", as drawn") + unit.interval(*ends)
    statement = (
        f"From the distribution of the noise. The interval is cut to the possible {unit.numbers}; it is"
        " not empty even if noisy_count is negative."
    )
    known = Uncertainty("noisy_count", "standard_error", ENDS, "exact", statement)
    return Table("tables", name, columns, (known,))


def name_groups(table: Table, numbered: Collection[str]) -> Table:
    """A table over groups with group numbers renamed; ``numbered``: columns of merged categories."""
    return replace(
        table,
        parts=[
            replace(
                part,
                name=part.name + GROUP,
                description=(
                    f"Group of {part.name}: the table of {part.name} alone lists its categories. Within"
                    " a group, no relation to other columns was measured"
                ),
            )
            if part.name in numbered
            else part
            for part in table.parts
        ],
    )
