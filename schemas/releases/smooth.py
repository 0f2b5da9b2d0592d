"""Base classes of sections on densities and functions: scales, and bandwidths drawn from the records."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.transforms import TransformName
from dpcore.releases.base import Release
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.tuned import BandwidthRule, TunedDensity
from schemas.document import absent
from schemas.releases.base import (
    OF_A_CURVE,
    Columns,
    ReleaseSection,
    SurveyFacts,
    declared,
    domain_of,
)
from schemas.releases.private import PrivateSetting
from schemas.survey.columns import CategoricalColumn, Column

MOST_CELLS = 4096
"""The most cells on a transformed scale, because engines compare values with all edges."""


class PrivateBandwidth(PrivateSetting):
    """A bandwidth chosen by the exponential mechanism, paid from the share of the release."""

    private: BandwidthRule = Field(
        description=(
            "quantiles: Silverman's rule from both quartiles of each column. error: for one column,"
            " the bandwidth with the smallest leave-one-out error."
        )
    )
    smallest: float = Field(
        ge=0.002,
        le=1,
        description="The smallest bandwidth, a fraction of each column's range. It is used if the"
        " records determine no bandwidth.",
    )

    def tune(self, smooth: Density | SmoothFunction, share: Budget) -> TunedDensity:
        """A release that first draws its bandwidth; ``smooth``: the one with the smallest bandwidth."""
        own = smooth.name, smooth.domain, smooth.rows, share, smooth, self.share, self.private
        return TunedDensity(*own, adjacency=smooth.adjacency)


SmoothBandwidth = Annotated[
    float | list[float] | PrivateBandwidth,
    Field(
        description="Standard deviation of the Gaussian kernel, as a fraction of the column's range"
        " (0.05 of a range of 200 is 10): one for all columns, or one for each. Or, for one or two"
        " columns, the method of drawing it from the records."
    ),
]


class SmoothSection(ReleaseSection):
    """Base class of sections on smooth densities of some columns, possibly on a transformed scale."""

    if TYPE_CHECKING:  # each kind states its own
        bandwidth: SmoothBandwidth

    without_replicates: ClassVar[str] = OF_A_CURVE

    columns: list[StrictStr]
    transform: TransformName | list[TransformName] | None = Field(
        default=None,
        exclude_if=absent,
        description=(
            "The scale on which the density is estimated, one for all columns or one for each. The"
            " bandwidth is a fraction of the range on this scale; results are on the columns' own"
            " scale. Only for continuous columns, with bounds where the transform is defined."
        ),
    )

    def domain(self, columns: Columns) -> Domain:
        """The cells of the columns, equally wide on the transformed scale, and the point masses."""
        given = self.transform or "none"
        scales = given if isinstance(given, list) else [given] * len(self.columns)
        if len(scales) != len(self.columns):
            raise ValueError("transform: one for all columns, or one for each")
        declared_columns = [declared(columns, name) for name in self.columns]
        named = zip(self.columns, declared_columns, scales, strict=True)
        return domain_of([_axis(name, column, scale) for name, column, scale in named])

    def at(
        self, bandwidth: float | list[float], domain: Domain, survey: SurveyFacts, share: Budget
    ) -> Density | SmoothFunction:
        """The release with this bandwidth."""
        raise NotImplementedError

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain, private = self.domain(survey.columns), self.bandwidth
        if not isinstance(private, PrivateBandwidth):
            return self.at(private, domain, survey, share)
        return private.tune(self.at(private.smallest, domain, survey, share), share)


def _axis(name: str, column: Column, scale: TransformName) -> Axis:
    axis = column.axis(name)
    if isinstance(axis, Grid) and not isinstance(column, CategoricalColumn):
        axis = replace(axis, points=tuple(map(float, column.point_masses)))
    if scale == "none":
        return axis
    if not isinstance(axis, Grid):
        raise ValueError(f"transform: {name} must be a continuous column without levels")
    cells = axis.cells if axis.integer else min(axis.cells, MOST_CELLS)
    return replace(axis, cells=cells, transform=scale)
