"""Who is protected, and from what, in the words of bundles and reports.

Everything that a bundle says of its privacy unit and of its neighbouring relation is said here, so
that no two of its files say different things.
"""

from dataclasses import dataclass

from dpcore.adjacency import Adjacency
from schemas.unit import UnitColumn


@dataclass(frozen=True)
class Protection:
    """A plan's neighbouring relation, its ``rows``, and its privacy unit where that is no row."""

    adjacency: Adjacency
    rows: int
    unit: UnitColumn | None = None

    @property
    def one(self) -> str:
        """What one unit is called."""
        return self.unit.name if self.unit else "record"

    @property
    def replaces(self) -> bool:
        return self.adjacency.relation == "replace-one"

    @property
    def who(self) -> str:
        """What the unit is."""
        if self.unit is None:
            return "one record (a row of the survey table)"
        return (
            f"one {self.one}: all records with the same value of {self.unit.column}, of which at most"
            f" {self.unit.max_rows} are used"
        )

    @property
    def difference(self) -> str:
        """In what neighbouring tables differ, after the word tables."""
        if self.replaces:
            return f"that differ in {'all records of ' * bool(self.unit)}one {self.one}"
        if self.unit is None:
            return "of which one has one record more than the other"
        return f"of which one has all records of one {self.one} more than the other"

    @property
    def neighbours(self) -> str:
        """The neighbouring relation."""
        if not self.replaces:
            return f"two tables {self.difference}"
        if self.unit is None:
            return "two tables of the same number of records that differ in one of them"
        return f"two tables {self.difference}, which are those of another {self.one}"

    @property
    def size(self) -> str:
        """What is known of the number of records."""
        if self.adjacency.public_rows:
            return f"the number of records, {self.rows}, is public"
        return f"the number of records is private; {self.rows} is a public guess" + (
            f", and the number of units ({self.one}) is not hidden" * self.replaces
        )

    @property
    def records(self) -> str:
        """How many records there are, as a heading says it."""
        return f"{'' if self.adjacency.public_rows else 'about '}{self.rows:,}"

    @property
    def fate(self) -> str:
        """What befalls the one unit between neighbours."""
        return "replaced by an entirely different one" if self.replaces else "left out"

    @property
    def metric(self) -> str:
        """The input metric, as the registry of deployments asks for it."""
        if self.adjacency.public_rows:
            return (
                "Input metric: the number of records that differ between two tables of the same, public"
                " number of records (replace-one). Bound on input distance: 1."
            )
        what = "records are" if self.unit is None else f"{self.one}s (all of their records) are"
        if self.replaces:
            return (
                f"Input metric: how many {what} replaced by others between two tables of the same number"
                " of them (replace-one). Bound on input distance: 1."
            )
        return (
            f"Input metric: how many {what} in one of two tables and not in the other (add-remove)."
            " Bound on input distance: 1."
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """What the promise leaves out, for readers."""
        said = ["The privacy unit is one record. Somebody with several records is protected less."]
        if self.unit:
            said = [
                f"The privacy unit is one {self.one}. Somebody in several of them is protected less.",
                f"Of a {self.one} with more than {self.unit.max_rows} records the others were left out,"
                " so that counts of large ones are too small. No error statement knows of it.",
            ]
        if self.adjacency.public_rows:
            known = "The number of records is public, as are"
        else:
            known = (
                "The number of records is not public; what is said of it is a guess or has noise."
            )
            known += " Public are"
        return (*said, f"{known} the categories, bounds and bins of the plan.")
