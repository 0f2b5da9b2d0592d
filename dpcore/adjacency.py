"""Which tables are neighbours, and what that makes of a sensitivity.

One protected unit may have up to ``most`` records in a table.  Neighbouring tables differ in the
records of one unit:

    replace-one    they are replaced by those of another unit
    add-remove     they are in one table and not in the other

The number of records is public only where one record is replaced by one.  Everywhere else it is a
private number like any other: nothing counts by it, and what is published of it has noise.

>>> Adjacency("add-remove").sensitivity(moved=2, present=1)
1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeVar, get_args

Relation = Literal["replace-one", "add-remove"]

ROW = "row"
"""The unit of which each record is one."""

Norm = TypeVar("Norm", int, float, Fraction)

MARGIN = 1024
"""A table may have so many times the records that the plan guesses, where their number is private.

Sums of larger ones might not fit in whole numbers of 64 bits, so they are refused.
"""


@dataclass(frozen=True)
class Adjacency:
    """A neighbouring relation, and the most records (or steps of weight) that a unit may have.

    ``weighted``: records count by weights of up to ``most`` steps for the unit, so that their total
    is private even where one record replaces one; ``unit``: a row, or the column whose values tell
    units apart: how many records one of them has is private then.
    """

    relation: Relation = "replace-one"
    most: int = 1
    weighted: bool = False
    unit: str = ROW

    def __post_init__(self) -> None:
        if self.relation not in get_args(Relation):
            raise ValueError(f"neighbours: {self.relation!r} is no neighbouring relation")
        if self.most < 1:
            raise ValueError(f"max_rows: must be positive, not {self.most}")

    @property
    def public_rows(self) -> bool:
        """Whether neighbours have the same number of records."""
        return self == REPLACE_ONE

    def require_public_rows(self, what: str) -> None:
        """Raise ``ValueError`` for a mechanism whose proof needs neighbours of the same size."""
        if not self.public_rows:
            raise ValueError(
                f"mechanism: {what} is private only where the number of records is public:"
                " neighbours: replace-one, and privacy_unit: row"
            )

    def most_rows(self, rows: int) -> int:
        """How many records a table may have: ``rows`` where they are public, else far more."""
        return rows if self.public_rows else MARGIN * rows

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

    def to_dict(self) -> dict[str, str]:
        """JSON form: the relation, and the rest where it is not one record that counts once."""
        written: dict[str, str] = {"neighbours": self.relation}
        if self.most > 1:
            written["most"] = str(self.most)
        if self.weighted:
            written["weighted"] = "yes"
        if self.unit != ROW:
            written["unit"] = self.unit
        return written

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Adjacency:
        """What ``to_dict`` wrote, beside other keys; raises ``ValueError`` or ``KeyError``."""
        most = int(document.get("most", 1))
        unit = document.get("unit", ROW)
        return cls(document["neighbours"], most, document.get("weighted") == "yes", unit)


REPLACE_ONE = Adjacency()
"""One record is replaced by one: the number of records is public."""
