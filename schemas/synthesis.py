"""What a plan says about synthetic tables."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field, StrictInt, StrictStr

from dpcore.domain import Bins, Domain
from dpcore.releases.base import Release, Samplable
from dpcore.releases.compressed_microdata import CompressedMicrodata
from dpcore.releases.density import Density
from dpcore.releases.histogram import Histogram
from dpcore.releases.margins import Margins
from dpcore.releases.microdata import Microdata
from dpcore.releases.tuned import TunedDensity
from schemas.columns import CategoricalColumn, Column, IntegerColumn
from schemas.document import Section
from schemas.releases import Name

UNIFORM = "uniform"


class Households(Section):
    """Synthetic households: records of one size, so many together.

    Nothing is read for it, and nothing but the size and what all members share is followed: who
    lives with whom is an assumption.
    """

    size: StrictStr = Field(
        description="A whole-number column of the records: how many people live in the household."
    )
    same: list[StrictStr] = Field(
        default_factory=list,
        description="Categorical columns in which all members of a household agree, such as a region.",
    )
    name: StrictStr = Field(
        default="household",
        pattern=r"^[^\W\d_][\w -]{0,39}$",
        description="The column of household numbers in the synthetic table.",
    )

    def check(self, domain: Domain, columns: Mapping[str, Column]) -> None:
        """Raise ``ValueError`` where the records have no such columns."""
        size = columns.get(self.size)
        if self.size not in domain.names or not isinstance(size, IntegerColumn):
            raise ValueError(
                f"households.size: {self.size!r} is no whole-number column of the records"
            )
        if size.nullable or size.bounds[0] < 1:
            raise ValueError(f"households.size: {self.size!r} may be null or less than one")
        for name in self.same:
            if name not in domain.names or not isinstance(columns[name], CategoricalColumn):
                raise ValueError(
                    f"households.same: {name!r} is no categorical column of the records"
                )
        if self.name.lower() in {name.lower() for name in columns}:
            raise ValueError(f"households.name: {self.name!r} is a column of the survey")


class Synthesis(Section):
    """Synthetic records drawn from one release, alone or refined by densities."""

    name: Name = Field(description="Names the synthetic table.")
    from_: Name = Field(alias="from", description="The release that the records are drawn from.")
    rows: StrictInt = Field(ge=0, le=2**31, description="How many records; a public choice.")
    tree: list[tuple[StrictStr, StrictStr]] | Literal["auto"] | None = Field(
        default=None,
        description="For margins: edges of a tree that the records follow (columns in no edge are "
        "drawn independently), or auto for the one that the noisy tables suggest. Without it, "
        "records are fitted to all tables.",
    )
    within_bins: dict[StrictStr, Name] = Field(
        default_factory=dict,
        description="By numeric column, the release that its values follow inside their bins: a "
        "density, or counts in finer bins; or `uniform`. A column that is not named follows the "
        "plan's density of it, one of it alone before a joint one; where there is none, it is "
        "uniform.",
    )

    households: Households | None = Field(
        default=None, description="Households into which the records are put, by their size."
    )

    def check(self, place: str, sections: Mapping[str, Any]) -> None:
        """Raise ``ValueError`` where the release does not exist or cannot be drawn from."""
        section = sections.get(self.from_)
        if section is None:
            raise ValueError(f"{place}.from: the plan has no release {self.from_!r}")
        if self.tree is None:
            return
        if section.kind != "margins":
            raise ValueError(f"{place}.tree: only records from margins follow a tree")
        for a, b in self.tree if isinstance(self.tree, list) else ():
            if a not in section.columns or b not in section.columns or a == b:
                raise ValueError(f"{place}.tree: {a!r} - {b!r} are not two columns of the margins")

    def sampler(self, release: Release) -> Samplable:
        """The release, told how its records are to be drawn."""
        if isinstance(release, Margins) and isinstance(self.tree, str):
            release = replace(release, tree="auto")
        elif isinstance(release, Margins) and isinstance(self.tree, list):
            position = release.domain.names.index
            edges = tuple((position(a), position(b)) for a, b in self.tree)
            release = replace(release, tree=edges)
        if isinstance(release, Microdata | CompressedMicrodata):
            release.require_memory(self.rows)
        if not isinstance(release, Samplable):
            raise ValueError(f"from: records cannot be drawn from {release.name!r}")
        return release

    def refining(self, built: Mapping[str, Release]) -> dict[str, Release]:
        """By binned column, the release that its values follow inside the bins; else uniform.

        ``built``: the plan's releases by name.  Raises ``ValueError`` where ``within_bins`` names a
        column without bins, or a release that does not say how the column is distributed.
        """
        columns = [axis.name for axis in built[self.from_].domain.axes if isinstance(axis, Bins)]
        for column in self.within_bins:
            if column not in columns:
                raise ValueError(f"within_bins.{column}: {self.from_} has no bins of this column")
        found: dict[str, Release] = {}
        for column in columns:
            known = [r for r in built.values() if column in r.domain.names]
            densities = [r for r in known if isinstance(r, Density | TunedDensity)]
            counts = [r for r in known if isinstance(r, Histogram | Margins | CompressedMicrodata)]
            by_name = {r.name: r for r in known if r in densities + counts}
            densities.sort(key=lambda density: len(density.domain.axes))
            default = densities[0].name if densities else UNIFORM
            wanted = self.within_bins.get(column, default)
            if wanted in by_name:
                found[column] = by_name[wanted]
            elif wanted != UNIFORM:
                raise ValueError(
                    f"within_bins.{column}: {wanted!r} is neither a density nor counts of this"
                    f" column; there is {', '.join([*by_name, UNIFORM])}"
                )
        return found
