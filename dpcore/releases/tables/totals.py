"""Public numbers of records on one level of regions, which a hierarchy takes from its plan."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.arrays import Integers
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.regions import Regions


@dataclass(frozen=True, eq=False)
class Totals:
    """Public totals; ``counts``: (regions,) of the regions of a level, without records outside them."""

    level: int
    counts: Integers

    def check(self, rows: int, regions: Regions, adjacency: Adjacency) -> None:
        """Raise ``ValueError`` if the totals cannot be the numbers of records of the regions."""
        if adjacency.weighted:
            raise ValueError("totals: are numbers of records, but this release counts weights")
        stated = int(self.counts.sum())
        if adjacency.public_rows and not (stated <= rows if regions.outside else stated == rows):
            raise ValueError(f"totals: add up to {stated:,}, but there are {rows:,} records")

    def promise(self, by: str, adjacency: Adjacency) -> str:
        """The promise that remains if the totals are published; ``by``: the column of the level."""
        removed = adjacency.relation == "add-remove"
        return (
            f"The numbers of records by {by} are taken from the plan and are exact. If they were counted"
            " in these records, they are published without noise, and the promise is only for tables"
            f" with these totals. The release hides which record of a {by} belongs to a person, but not"
            f" the number of records of the {by}."
            + (
                " Two such tables differ by one record removed and one added, which counts as two steps."
                * removed
            )
        )
