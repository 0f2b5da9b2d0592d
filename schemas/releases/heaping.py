"""Which bins of numbers may occur with which multiples, as rules over cells."""

from collections.abc import Sequence

import numpy as np

from dpcore.domain.axes import Bins, Categories
from dpcore.domain.cell_values import CellNumbers, spacing
from dpcore.domain.domain import Domain
from dpcore.post.records.rules import Rule


def heaping_rules(domain: Domain, rounded: Sequence[tuple[str, str]]) -> tuple[Rule, ...]:
    """Which bins of numbers may occur with which multiples: those that hold one.

    ``rounded``: columns of numbers, each with the one of its multiples.  Raises ``ValueError`` where the
    numbers have no bins.
    """
    found: list[Rule] = []
    for numbers, multiples in rounded:
        if numbers not in domain.names or multiples not in domain.names:
            continue
        base, heap = domain.names.index(numbers), domain.names.index(multiples)
        axis, levels = domain.axes[base], domain.axes[heap]
        if not isinstance(axis, Bins):
            raise ValueError(
                f"columns: {multiples} adds nothing to {numbers}, which has a cell for each number;"
                f" state bins of {numbers}, or leave {multiples} out"
            )
        assert isinstance(levels, Categories)
        for code in range(levels.size - levels.nullable):
            found.append(Rule(((heap, (code,)),), ((base, _holding(axis, levels, code)),)))
        if axis.nullable:
            found.append(Rule(((heap, (levels.size - 1,)),), ((base, (axis.size - 1,)),)))
    return tuple(found)


def _holding(axis: Bins, levels: Categories, code: int) -> tuple[int, ...]:
    """The bins that hold a multiple of this level and of no larger one."""
    inside = CellNumbers.of(axis, np.arange(axis.cells))
    values = inside.heaped(np.zeros(axis.cells), *spacing(levels, np.full(axis.cells, code)))
    return tuple(np.flatnonzero(np.isfinite(values)).tolist())
