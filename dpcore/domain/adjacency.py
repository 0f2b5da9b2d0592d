"""Which tables are neighbours, and how the sensitivity of a sum follows from that.

One protected unit may have up to ``most`` records in a table.  Neighbouring tables differ in the
records of one unit:

    replace-one    its records are replaced by those of another unit
    add-remove     its records are in one table and not in the other

The number of records is public only if one record replaces one.  Everywhere else it is private like any
other statistic: no computation may use it, and it is published with noise only.

**Tables of any size.**  A private number of records has no largest value, but sums in 64 bits and
training to a stated accuracy have limits.  Cutting large tables to M records is no way out.  Let a rule
leave tables of at most M > 1 records as they are, and keep neighbours at distance 1.  Of M + 1 distinct
records it must keep a set within one record of each of the M + 1 tables that lack one of them.  Only
all M + 1 records are such a set, so by induction nothing is ever cut.  (To keep the first M in a public
order is stable at distance 2: one record comes in, another goes out.)  The following are bounded
instead, at no cost:

    a count or sum    moved to the nearest end of a public range: this shortens differences in every
                      coordinate, so no L1, L2 or largest norm of a difference grows
    a real vector     a sum in which each record has the weight ``taper``

**Lemma** (``taper``).  Let |.| be a norm, S(D) a sum over the N records of D of terms of norm at most p,
of which any two differ by at most d.  With a(N) = 1 - N/(4 M) up to N = 2 M and M/N above, a(N) S(D) is
a sum of terms of total norm at most M p, and its sensitivity is at most that of S: m max(d, p), or m p
under add-remove.  *Proof.*  a never rises, and a(N + 1) + N (a(N) - a(N + 1)) <= 1: it is 1 - 1/(4 M)
up to 2 M, and 2 M/(N + 1) <= 1 above.  Adding this up over i < j, a(N + j) j + N (a(N) - a(N + j)) <=
j.  Let D' have j records more than D, after r were replaced; r + j <= m.  Then a(N + j) S(D') - a(N)
S(D) = a(N + j) (S(D') - S(D)) + (a(N + j) - a(N)) S(D) has norm at most a(N + j) (r d + j p) + (a(N) -
a(N + j)) N p <= r d + j p <= m max(d, p); r = 0 under add-remove.  QED

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
"""The privacy unit if each record is a separate unit."""

TAPER_ERROR = 2.0**-51
"""The relative error of a count times its factor: three roundings, and one to spare."""

Number = TypeVar("Number", int, float, Fraction)

MARGIN = 1024
"""If the number of records is private, counts are cut at this many times the plan's guess."""


@dataclass(frozen=True)
class Adjacency:
    """A neighbouring relation, and the most records (or steps of weight) that a unit may have.

    ``weighted``: records count by weights, up to ``most`` steps per unit, so their total is private
    even if one record replaces one.  ``unit``: "row", or the column that identifies the units; then the
    number of records of a unit is private.
    """

    relation: Relation = "replace-one"
    most: int = 1
    weighted: bool = False
    unit: str = ROW

    def __post_init__(self) -> None:
        if self.relation not in get_args(Relation):
            known = " or ".join(get_args(Relation))
            raise ValueError(f"neighbours: must be {known}, not {self.relation!r}")
        if self.most < 1:
            raise ValueError(f"max_rows: must be positive, not {self.most}")

    @property
    def public_rows(self) -> bool:
        """Whether neighbours have the same number of records."""
        return self == REPLACE_ONE

    def require_public_rows(self, what: str) -> None:
        """Raise ``ValueError`` unless neighbours have the same size, as the proof of ``what`` needs."""
        if not self.public_rows:
            raise ValueError(
                f"mechanism: {what} is private only if the number of records is public; state"
                " `neighbours: replace-one` and `privacy_unit: row`"
            )

    def most_rows(self, rows: int) -> int:
        """The most records that count: ``rows`` if that is public, else ``MARGIN`` times it."""
        return rows if self.public_rows else MARGIN * rows

    def taper(self, records: int, most: int) -> float:
        """The weight a(N) of each record in a sum over N = ``records`` records (N is private); the
        weights add up to at most ``most``.

        The factor and its product with a count have a relative error of at most ``TAPER_ERROR``.
        """
        if self.public_rows:
            return 1.0
        return 1.0 - records / (4 * most) if records <= 2 * most else most / records

    def sensitivity(self, *, moved: Number, present: Number) -> Number:
        """The most by which a sum over records changes between neighbours, in some norm.

        ``moved``: the largest norm of the difference of two records' terms; ``present``: the largest
        norm of one record's term.  Where a unit's records are replaced, the new unit may have fewer
        of them.  Then the change is a sum of at most m = ``most`` parts, each the difference of two
        terms or one term alone.
        """
        if self.relation == "add-remove":
            return self.most * present
        return moved if self.public_rows else self.most * max(moved, present)

    def squared(self, *, moved: Number, present: Number) -> Number:
        """The square of ``sensitivity``, from the squares of both norms."""
        # The square has the factor m^2; ``sensitivity`` supplies one m.
        return self.most * self.sensitivity(moved=moved, present=present)

    def to_dict(self) -> dict[str, str]:
        """JSON form: the relation, and other fields that differ from their defaults."""
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
        """Read what ``to_dict`` wrote; other keys are ignored.  Raises ``ValueError``, ``KeyError``."""
        most = int(document.get("most", 1))
        unit = document.get("unit", ROW)
        return cls(document["neighbours"], most, document.get("weighted") == "yes", unit)


REPLACE_ONE = Adjacency()
"""The relation in which one record replaces one, so that the number of records is public."""
