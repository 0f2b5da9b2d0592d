"""A sorted list of keys with values, where finding neighbours and inserting take O(log i) steps.

A skip list (Pugh 1990): every key is in the lowest chain, half of them in the next, and so on.  A
search follows the highest chain as far as it can, then goes down one chain, and so on.

>>> line = SkipList()
>>> for key in (30, 10, 20): line.insert(key, f"v{key}")
>>> line.neighbours(15)
((10, 'v10'), (20, 'v20'))
>>> line.neighbours(35)
((30, 'v30'), None)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")

LEVELS = 32


@dataclass(eq=False)
class _Node(Generic[Value]):
    key: int
    value: Value
    after: list[_Node[Value] | None] = field(default_factory=list)


class SkipList(Generic[Value]):
    """Distinct whole keys in ascending order."""

    def __init__(self) -> None:
        self._heads: list[_Node[Value] | None] = [None] * LEVELS
        self._size = 0

    def neighbours(self, key: int) -> tuple[tuple[int, Value] | None, tuple[int, Value] | None]:
        """The nearest keys below and from ``key`` on, with their values."""
        below = self._before(key)[0]
        above = self._following(below)[0]
        return _item(below), _item(above)

    def insert(self, key: int, value: Value) -> None:
        """Add a key that is not in the list."""
        node: _Node[Value] = _Node(key, value)
        self._size += 1
        before = self._before(key)
        for level in range(_height(self._size)):
            chain = self._following(before[level])
            node.after.append(chain[level])
            chain[level] = node

    def _before(self, key: int) -> list[_Node[Value] | None]:
        """On each level the last node with a smaller key, or None for the start of the list."""
        found: list[_Node[Value] | None] = [None] * LEVELS
        node: _Node[Value] | None = None
        for level in reversed(range(LEVELS)):
            while (following := self._following(node)[level]) is not None and following.key < key:
                node = following
            found[level] = node
        return found

    def _following(self, node: _Node[Value] | None) -> list[_Node[Value] | None]:
        return self._heads if node is None else node.after


def _item(node: _Node[Value] | None) -> tuple[int, Value] | None:
    return None if node is None else (node.key, node.value)


def _height(count: int) -> int:
    """1 for half of the keys, 2 for a quarter, and so on, in an order without pattern."""
    mixed = (count * 0x9E3779B97F4A7C15) % 2**64
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    mixed ^= mixed >> 31
    return min(LEVELS, (mixed & -mixed).bit_length() or LEVELS)
