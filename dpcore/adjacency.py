"""Which tables are neighbours, and what that makes of a sensitivity.

One protected unit may have up to ``most`` records in a table.  Neighbouring tables differ in the
records of one unit:

    replace-one    they are replaced by those of another unit
    add-remove     they are in one table and not in the other

The number of records is public only where one record is replaced by one.  Everywhere else it is a
private number like any other: nothing counts by it, and what is published of it has noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar

Relation = Literal["replace-one", "add-remove"]

Norm = TypeVar("Norm", int, float, Fraction)


@dataclass(frozen=True)
class Adjacency:
    """A neighbouring relation, and the most records (or steps of weight) that a unit may have."""

    relation: Relation = "replace-one"
    most: int = 1

    def __post_init__(self) -> None:
        if self.relation not in ("replace-one", "add-remove"):
            raise ValueError(f"neighbours: {self.relation!r} is no neighbouring relation")
        if self.most < 1:
            raise ValueError(f"max_rows: must be positive, not {self.most}")

    @property
    def public_rows(self) -> bool:
        """Whether neighbours have the same number of records."""
        return self == Adjacency()

    def sensitivity(self, *, moved: Norm, present: Norm) -> Norm:
        """The most by which a sum over records moves, in a norm.

        ``moved``: the largest norm of the difference of two records' terms; ``present``: the largest
        norm of one record's term.  A unit whose records are replaced may have fewer of them than the
        other: the difference of two sums of at most m terms is a mean of differences of terms and of
        terms alone, m times over.
        """
        if self.relation == "add-remove":
            return self.most * present
        return moved if self.public_rows else self.most * max(moved, present)

    def squared(self, *, moved: Norm, present: Norm) -> Norm:
        """``sensitivity`` of squared norms."""
        if self.relation == "add-remove":
            return self.most**2 * present
        return moved if self.public_rows else self.most**2 * max(moved, present)
