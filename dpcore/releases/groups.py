"""Groups of cells as an analyst reads them: which cells they are, and tables that count by them.

Merged bins are one wider bin, published like any other.  A group of categories has a number: the table
of the column alone says which categories it holds, and tables of several columns count by it.

    x.trade            trade    trade_group  noisy_count ...     x.trade.sex    trade_group  sex ...
                       baker    1            120                                1            F
                       smith    2             14                                1            M
                       tinker   2              9                                2            F
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Axis, Bins, Categories, Domain
from dpcore.mechanisms.adaptive_margins import Noise
from dpcore.post.bounded import bounded_interval
from dpcore.post.rules import Rule
from dpcore.releases.base import LEVEL, Table, Uncertainty
from dpcore.releases.cells import describe_cells, described_as

Integers = NDArray[np.int64]

GROUP = "_group"
"""Ends the name of a published column of groups."""

UNCERTAINTY = (
    Uncertainty(
        "noisy_count",
        "standard_error",
        ("lower_90", "upper_90"),
        "exact",
        "The law of the noise is known. The interval is made for counts from 0 to the rows: it is a"
        " range even where noisy_count is negative.",
    ),
)


def grouped_axis(axis: Axis, groups: Integers) -> Axis:
    """The axis with one cell for each group of its cells (size,); null is a group, the last."""
    _, first = np.unique(groups, return_index=True)
    inside = len(first) - axis.nullable
    if isinstance(axis, Categories):
        return Categories(axis.name, tuple(range(1, inside + 1)), axis.nullable)
    edges = axis.edge(np.append(first[:inside], axis.size - axis.nullable))
    return Bins(axis.name, tuple(edges.tolist()), axis.nullable, axis.integer)


def rule_of_groups(rule: Rule, groups: Sequence[Integers]) -> Rule:
    """The rule about groups; ``groups``: of each column, none across a condition."""
    when, then = (
        tuple((a, tuple(np.unique(groups[a][list(cells)]).tolist())) for a, cells in part)
        for part in rule
    )
    return Rule(when, then)


def table_of_groups(
    name: str, axis: Axis, groups: Integers, counts: Integers, noise: Noise, most: int
) -> Table:
    """The noisy counts (size,) of one column, and the group of each of its cells.

    ``most``: no exact count is larger.
    """
    domain = Domain((axis,))
    columns, descriptions = describe_cells(domain, np.arange(axis.size))
    about = described_as(domain)
    if isinstance(axis, Categories):
        numbers, _ = describe_cells(Domain((grouped_axis(axis, groups),)), groups)
        columns[axis.name + GROUP] = numbers[axis.name]
        descriptions[axis.name + GROUP] = (
            f"Number of the group of {axis.name} in the tables of several columns"
        )
        about[axis.name + GROUP] = axis.name
    # Noise is beyond the second width in one direction as often as beyond the first in either.
    lower, upper = bounded_interval(
        counts, noise.half_width(LEVEL), noise.half_width(2 * LEVEL - 1), most
    )
    return Table(
        "tables",
        name,
        columns
        | {
            "noisy_count": counts,
            "standard_error": np.full(axis.size, noise.stddev),
            "lower_90": lower,
            "upper_90": upper,
        },
        descriptions
        | {
            "noisy_count": "Count of records plus noise of mean zero, as drawn",
            "standard_error": "Standard deviation of the noise in noisy_count",
            "lower_90": "Lower end of a 90% interval for the exact count",
            "upper_90": "Upper end of a 90% interval for the exact count",
        },
        about,
        UNCERTAINTY,
    )


def told_as_groups(table: Table, names: Collection[str]) -> Table:
    """A table over groups, its columns of numbers named as such; ``names``: of merged categories."""

    def named(column: str) -> str:
        return column + GROUP if column in names else column

    texts = {
        column: f"Group of {column}: the table of {column} alone says of which categories. Within a"
        " group nothing was measured of other columns"
        for column in names
    }
    return replace(
        table,
        columns={named(column): values for column, values in table.columns.items()},
        descriptions={
            named(column): texts.get(column, text) for column, text in table.descriptions.items()
        },
        about={named(column): of for column, of in table.about.items()},
    )
