"""Densities and functions of transformed columns, in a plan."""

from dataclasses import replace

from pydantic import Field, StrictStr

from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.transforms import TransformName
from schemas.document import absent
from schemas.releases.base import Columns, ReleaseSection, declared, domain_of
from schemas.survey.columns import CategoricalColumn, Column

MOST_CELLS = 4096
"""Cells of a transformed column: engines find them by comparisons with all edges."""


class TransformedSection(ReleaseSection):
    """A section that may estimate on another scale than that of its columns."""

    columns: list[StrictStr]
    transform: TransformName | list[TransformName] | None = Field(
        default=None,
        exclude_if=absent,
        description="The scale on which the density is estimated, one for all columns or one each: log,"
        " sqrt, log1p or none. The bandwidth is a fraction of the range on that scale; what is published"
        " is on the columns' own. Continuous columns only, with bounds where the transform is defined.",
    )

    def domain(self, columns: Columns) -> Domain:
        """The cells of the columns, equal on the scale of their transforms, and their point masses."""
        given = self.transform or "none"
        scales = given if isinstance(given, list) else [given] * len(self.columns)
        if len(scales) != len(self.columns):
            raise ValueError("transform: one for all columns, or one for each")
        declared_columns = [declared(columns, name) for name in self.columns]
        named = zip(self.columns, declared_columns, scales, strict=True)
        return domain_of([_axis(name, column, scale) for name, column, scale in named])


def _axis(name: str, column: Column, scale: TransformName) -> Axis:
    axis = column.axis(name)
    if isinstance(axis, Grid) and not isinstance(column, CategoricalColumn):
        axis = replace(axis, points=tuple(map(float, column.point_masses)))
    if scale == "none":
        return axis
    if not isinstance(axis, Grid):
        raise ValueError(f"transform: {name} must be a continuous column without levels")
    if axis.cells > MOST_CELLS and not axis.integer:
        raise ValueError(
            f"transform: {name} has a grid of {axis.cells}; state columns.{name}.grid: {MOST_CELLS} or"
            " less"
        )
    return replace(axis, transform=scale)
