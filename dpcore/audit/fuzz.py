"""Random neighbouring tables: with few or many records, heaped, spread, in one cell, or empty.

``neighbours`` makes tables that are likely to be the worst; random tables cover unforeseen cases.  A
unit may have several records, in one cell or in different cells, and fewer than the most allowed.

>>> from dpcore.domain.axes import Categories
>>> from dpcore.domain.domain import Domain
>>> domain = Domain((Categories("sex", ("F", "M")), Categories("owns", ("yes", "no"))))
>>> pair = next(fuzzed_pairs(domain, 9, Adjacency(), np.random.default_rng(1)))
>>> pair.near.total, pair.far.total
(9, 9)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dpcore.audit.neighbours import Pair, table
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain

MOST_CELLS = 256
"""The most occupied cells of a table."""


def fuzzed_pairs(
    domain: Domain, rows: int, adjacency: Adjacency, generator: np.random.Generator
) -> Iterator[Pair]:
    """Endless random pairs of neighbours, of ``rows`` records or, if private, of up to twice as many."""
    while True:
        for label, spread in _LAYOUTS.items():
            unit = min(adjacency.most, rows)
            count = rows - unit
            if not adjacency.public_rows:
                count = int(generator.choice([0, 1, rows - unit, 2 * rows - unit]))
            others = spread(domain, count, generator)
            sides = [_unit(domain, unit, generator) for _ in range(2)]
            if not adjacency.public_rows:
                sides = [side[: generator.integers(len(side) + 1)] for side in sides]
            if adjacency.relation == "add-remove":
                sides[0] = sides[0][:0]
            near, far = (table(domain, [*others, *((cell, 1) for cell in side)]) for side in sides)
            yield Pair(f"at random; others {label}", near, far)


def _unit(domain: Domain, most: int, generator: np.random.Generator) -> list[int]:
    """The cells of a unit's records: all in one, or independent; some are corners of the domain."""
    size = min(most, MOST_CELLS)
    if generator.random() < 0.5:
        return _cells(domain, 1, generator) * most
    cells = _cells(domain, size, generator)
    return [cells[i % size] for i in range(most)]


def _cells(domain: Domain, size: int, generator: np.random.Generator) -> list[int]:
    """Cells at random, some with every column at an end of its values."""
    shape = np.array(domain.shape)
    if generator.random() < 0.5:
        codes = generator.integers(0, 2, (size, len(shape))) * (shape - 1)
    else:
        codes = generator.integers(0, shape, (size, len(shape)))
    return domain.numbers(domain.pack(codes))


def _heaped(domain: Domain, count: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    """A few cells; each has about a third of the records that remain."""
    found, cells = [], _cells(domain, 8, generator)
    for cell in cells:
        here = count // 3
        found.append((cell, here))
        count -= here
    return [*found, (cells[0], count)]


def _spread(domain: Domain, count: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    cells = _cells(domain, min(max(count, 1), MOST_CELLS), generator)
    shares = np.bincount(generator.integers(0, len(cells), min(count, 4096)), minlength=len(cells))
    shares[0] += count - shares.sum()
    return list(zip(cells, shares.tolist(), strict=True))


def _alike(domain: Domain, count: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    return [(_cells(domain, 1, generator)[0], count)]


_LAYOUTS: dict[str, Callable[..., list[tuple[int, int]]]] = {
    "in one cell": _alike,
    "heaped": _heaped,
    "spread": _spread,
}
"""Layouts with few distinct records come first, because a machine is trained on them quickly."""
