"""The plan's sections on synthetic tables."""

from collections.abc import Mapping

import numpy as np
from pydantic import Field, StrictInt, StrictStr

from dpcore.domain.axes import Bins, Grid
from dpcore.domain.cell_values import CellNumbers
from dpcore.domain.domain import Domain
from dpcore.post.records.weighted import LARGEST_FIT
from dpcore.releases.abilities import FitsRecords, Refining, Samplable
from dpcore.releases.base import Release
from dpcore.suggestion import suggestion
from dpcore.synthesis.column import wide_cells
from schemas.document import Section, absent
from schemas.numbers import plain
from schemas.releases import Name
from schemas.survey.columns import Column, nameable
from schemas.survey.derived import Derived, derived_columns
from schemas.text import Line

UNIFORM = "uniform"

ASSUMED = "The position of values inside their bins is assumed, not measured"
NOT_DRAWN = "Records at point masses are not drawn"

IMPLICATE = "implicate"
"""The name of the column with the number of an implicate."""


class Synthesis(Section):
    """Synthetic records drawn from one release, optionally refined by densities or finer counts."""

    name: Name = Field(description="Names the synthetic table.")
    title: Line = Field(
        default="",
        max_length=100,
        exclude_if=absent,
        description="The heading in the report; by default made from the name.",
    )
    from_: Name = Field(alias="from", description="The release from which the records are drawn.")
    rows: StrictInt = Field(ge=1, le=2**31, description="The number of records, a public choice.")
    within_bins: dict[StrictStr, Name] = Field(
        default_factory=dict,
        description="For each numeric column, the release that its values follow inside their bins: a"
        " density, counts in finer bins, or `uniform`. Default: a density of the plan, preferably of"
        " this column alone, if at least half of the bins are as wide as its bandwidth; otherwise a"
        " smooth density that fits the records' counts.",
    )

    derived: dict[StrictStr, StrictStr] = Field(
        default_factory=dict,
        description=(
            "Columns computed by formula from other columns of each record, never drawn or measured."
            " Allowed: numbers, columns, + - * / **, comparisons, `A if C else B`, min, max, abs,"
            " round."
        ),
    )

    implicates: StrictInt | None = Field(
        default=None,
        ge=5,
        le=100,
        description="Also publish this many files of records, each as large as the survey. Their"
        " differences represent the noise, so that programs for multiple imputation compute"
        " errors that include it. Needs margins or microdata-margins. Costs no budget.",
    )

    def sampler(self, built: Mapping[str, Release]) -> Samplable:
        """The release from which the records are drawn; ``built``: the plan's releases by name.

        Raises ``ValueError`` if there is no such release, or these records cannot be drawn from it.
        """
        release = self.source(built)
        release.require_memory(self.rows)
        if self.implicates:
            self._require_tables(release)
        return release

    def source(self, built: Mapping[str, Release]) -> Samplable:
        """The same release, whatever its memory."""
        if self.from_ not in built:
            meant = suggestion(self.from_, built)
            raise ValueError(f"from: the plan has no release {self.from_!r}{meant}")
        release = built[self.from_]
        if not isinstance(release, Samplable):
            raise ValueError(f"from: records cannot be drawn from {release.name!r}")
        return release

    def _require_tables(self, release: Release) -> None:
        """Raise ``ValueError`` if implicates cannot be fitted to the release's tables."""
        if not isinstance(release, FitsRecords) or release.adjacency.weighted:
            raise ValueError(
                "implicates: need a release of kind margins or microdata-margins, without weights and"
                " without compress"
            )
        if release.rows > LARGEST_FIT:
            raise ValueError(
                f"implicates: need a survey of at most {LARGEST_FIT:,} records, not {release.rows:,}"
            )

    def deriving(self, release: Samplable, columns: Mapping[str, Column]) -> list[Derived]:
        """The columns computed from the release's columns. ``ValueError`` if a formula is not valid."""
        for name in self.derived:
            if not nameable(name):
                raise ValueError(f"derived.{name}: is not a valid column name")
        if self.implicates:
            for name in (*columns, *self.derived):
                if name.lower() == IMPLICATE:
                    raise ValueError(
                        f"implicates: are numbered in a column {IMPLICATE!r}; rename the plan's {name!r}"
                    )
        drawn = tuple(name for name in release.domain.names if name in columns)
        return derived_columns(drawn, columns, self.derived, release.follows)

    def check_values(self, domain: Domain) -> None:
        """Raise ``ValueError`` if a cell of a column contains no multiple of the column's step."""
        for axis in domain.axes:
            if isinstance(axis, Grid) and axis.integer and (axis.step or 1) > 1:
                raise ValueError(
                    f"from: {self.from_} has a cell for each whole number of {axis.name}, not only for"
                    f" multiples of its step {axis.step}; state bins, or levels instead of the step"
                )
            if isinstance(axis, Bins):
                inside = CellNumbers.of(axis, np.arange(axis.cells))
                for code in np.flatnonzero(inside.first > inside.last).tolist():
                    lower, upper = map(plain, axis.edges[code : code + 2])
                    raise ValueError(
                        f"from: the bin of {axis.name} from {lower} to {upper} in {self.from_} contains"
                        f" no multiple of the column's step {plain(float(axis.step or 0))}; widen it"
                    )

    def refining(self, built: Mapping[str, Release]) -> dict[str, Refining]:
        """For each binned column, the release that synthetic values follow inside the bins.

        ``built``: the plan's releases by name.  Raises ``ValueError`` if ``within_bins`` names a column
        without bins, or a release without information on the column's distribution.
        """
        axes = built[self.from_].domain.axes
        columns = {axis.name: axis for axis in axes if isinstance(axis, Bins)}
        for column in self.within_bins:
            if column not in columns:
                raise ValueError(f"within_bins.{column}: {self.from_} has no bins of this column")
        found: dict[str, Refining] = {}
        for column, axis in columns.items():
            known = [
                r
                for r in built.values()
                if isinstance(r, Refining) and r.refines and column in r.domain.names
            ]
            by_name = {release.name: release for release in known}
            fine = [r for r in known if r.resolves(axis)]
            usual = [release for release in fine if release.refines != "counts"]
            usual.sort(key=lambda r: (r.refines != "values", len(r.domain.axes)))
            wanted = self.within_bins.get(column, usual[0].name if usual else None)
            if wanted in by_name:
                found[column] = by_name[wanted]
            elif wanted not in (None, UNIFORM):
                raise ValueError(
                    f"within_bins.{column}: {wanted!r} is neither a density nor counts of this"
                    f" column; there is {', '.join([*by_name, UNIFORM])}"
                )
        return found

    def notes(self, built: Mapping[str, Release]) -> dict[str, list[str]]:
        """Notes for readers of the records, each with its columns."""
        release, refined, found = self.source(built), self.refining(built), dict[str, list[str]]()
        for axis in release.domain.axes:
            if isinstance(axis, Bins) and axis.name not in refined and wide_cells(axis).any():
                found.setdefault(ASSUMED, []).append(axis.name)
            if isinstance(axis, Grid) and axis.points and not release.counts_points:
                found.setdefault(NOT_DRAWN, []).append(axis.name)
        return found
