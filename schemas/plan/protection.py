"""The privacy unit and the neighbouring relation in words, for bundles and reports.

All files of a bundle use these texts, so that they agree.
"""

from dataclasses import dataclass

from dpcore.domain.adjacency import Adjacency
from schemas.survey.columns import Invalid
from schemas.survey.unit import UnitColumn

RULES: dict[Invalid, str] = {
    "clamp": "a number outside its bounds counts as the nearest bound; any other value that is not"
    " valid counts as null, or in the first cell if the column has no nulls",
    "own-cell": "a value that is not valid counts as null, which has a cell in every column",
    "drop": "a record with a value that is not valid is left out",
}
"""What happens to values that are not valid, in words, for each rule that accepts all tables."""


GROWS = (
    "; for all runs of the series together, as long as no unit enters or leaves a past period between"
    " runs"
)


@dataclass(frozen=True)
class Protection:
    """A plan's neighbouring relation and privacy unit, for texts.

    ``unit``: None if it is a row; ``invalid``: what happens to values that are not valid. ``periods``:
    in a series, the largest number of periods of a unit, if bounded; ``grows``: whether runs are priced
    together, which requires that the table only grows. ``counted``: whether a row is several records;
    ``totals``: columns by which the plan states numbers of records; ``clamped``, ``open_texts`` and
    ``open_numbers``: columns with clamped values, and with found categories or bounds.
    """

    adjacency: Adjacency
    rows: int
    unit: UnitColumn | None
    invalid: Invalid
    periods: int | None
    grows: bool
    counted: bool
    totals: tuple[str, ...]
    clamped: tuple[str, ...]
    open_texts: tuple[str, ...]
    open_numbers: tuple[str, ...]

    @property
    def within(self) -> str:
        """Words for the periods to which the bound on a unit's number of records applies."""
        if self.periods is None:
            return ""
        if self.periods == 1:
            return " in the first of its periods"
        return f" in each of the first {self.periods} of its periods"

    @property
    def one(self) -> str:
        """The noun for one unit."""
        return self.unit.name if self.unit else "record"

    @property
    def replaces(self) -> bool:
        return self.adjacency.relation == "replace-one"

    @property
    def who(self) -> str:
        """A description of the unit."""
        if self.counted:
            return "one record (a row of the survey table holds several)"
        if self.unit is None:
            return "one record (a row of the survey table)"
        return (
            f"one {self.one}: all records with the same value of {self.unit.column}, of which at most"
            f" {self.unit.max_rows}{self.within} are used"
        )

    @property
    def difference(self) -> str:
        """The difference between neighbouring tables, in words that follow "tables"."""
        if self.replaces:
            return f"that differ in {'all records of ' * bool(self.unit)}one {self.one}"
        if self.unit is None:
            return "of which one has one additional record"
        return f"of which one has all records of one additional {self.one}"

    @property
    def neighbours(self) -> str:
        """The neighbouring relation."""
        if not self.replaces:
            return f"two tables {self.difference}"
        if self.unit is None:
            return "two tables with the same number of records that differ in one record"
        return f"two tables {self.difference}, replaced by the records of another {self.one}"

    @property
    def size(self) -> str:
        """Whether the number of records is public."""
        if self.adjacency.public_rows:
            return f"the number of records, {self.rows}, is public"
        return f"the number of records is private; {self.rows} is a public guess" + (
            f", and the number of units ({self.one}) is not hidden" * self.replaces
        )

    @property
    def total(self) -> bool:
        """Whether the guarantee is for all tables, including those with invalid values."""
        return self.invalid != "refuse"

    @property
    def domain(self) -> str:
        """The set of tables for which the guarantee holds, in words."""
        # Weights of that many records, in steps, add up exactly in 64 bits (``tasks.survey.tally``).
        most = f"{self.rows}" if self.adjacency.public_rows else "at most a trillion"
        count, also = f" and {most} records", GROWS * self.grows + self._same_totals
        if self.total:
            rule = f"{RULES[self.invalid]}{self._moved}"
            return f"all tables with the columns of the plan{count}: {rule}{also}"
        text, number = (
            f" (any {kind} in {' and '.join(names)})" * bool(names)
            for kind, names in (("text", self.open_texts), ("number", self.open_numbers))
        )
        return (
            f"tables that fit the plan: they have its columns{count}, and every value has its column's"
            f" type and is a listed category{text}, within the bounds{number}{self._moved}, or null"
            f" where null is allowed{also}"
        )

    @property
    def _moved(self) -> str:
        if not self.clamped:
            return ""
        return (
            f" (in {' and '.join(self.clamped)}, numbers out of bounds count as the nearest bound)"
        )

    @property
    def _same_totals(self) -> str:
        if not self.totals:
            return ""
        return (
            f"; if the stated numbers of records by {' and '.join(self.totals)} were counted in these"
            " records, only tables with the same numbers"
        )

    @property
    def records(self) -> str:
        """The number of records for a heading."""
        return f"{'' if self.adjacency.public_rows else 'about '}{self.rows:,}"

    @property
    def fate(self) -> str:
        """The change of the unit in which neighbours differ, in words."""
        return "replaced by any other one" if self.replaces else "left out"

    @property
    def metric(self) -> str:
        """The input metric, as the registry of deployments asks for it."""
        if self.adjacency.public_rows:
            return (
                "Input metric: the number of records that differ between two tables of the same, public"
                " number of records (replace-one). Bound on input distance: 1."
            )
        what = "records" if self.unit is None else f"{self.one}s (with all their records)"
        if self.replaces:
            return (
                f"Input metric: the number of {what} replaced between two tables with the same number of"
                " them (replace-one). Bound on input distance: 1."
            )
        return (
            f"Input metric: the number of {what} in only one of two tables (add-remove). Bound on input"
            " distance: 1."
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """The limits of the guarantee, for readers."""
        said = ["The privacy unit is one record. A person with several records is protected less."]
        if self.unit:
            said = [
                f"The privacy unit is one {self.one}. A person in several of them is protected less.",
                f"At most {self.unit.max_rows} records of each {self.one}{self.within} are used, so"
                f" counts that include a {self.one} with more than {self.unit.max_rows} records are too"
                " small. Error statements do not include this bias.",
            ]
            if self.periods is not None:
                said.append(
                    f"Records of a {self.one} in later periods are left out, so counts of later periods"
                    " are too small."
                )
        if self.adjacency.public_rows:
            known = "The number of records is public, as are"
        else:
            known = (
                "The number of records is private; every published value of it is a guess or noisy."
            )
            known += " Public are"
        return (*said, f"{known} the categories, bounds and bins of the plan{self.except_found}.")

    @property
    def found(self) -> list[str]:
        """The categories and bounds that are found in the records, in words."""
        of = {"categories": self.open_texts, "open bounds": self.open_numbers}
        return [f"the {what} of {' and '.join(names)}" for what, names in of.items() if names]

    @property
    def except_found(self) -> str:
        """The end of a sentence on public categories and bounds."""
        found = " and ".join(self.found)
        return f", except {found}, which are found with noise, within the budget" if found else ""
