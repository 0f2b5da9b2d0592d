"""Densities in a plan."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, StrictStr

from dpcore.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.density import BinnedDensity, Density, SpectralDensity
from dpcore.releases.pure_density import CoefficientDensity, GammaDensity
from schemas.releases.base import Columns, ReleaseSection, declared, domain_of, listed, one_each

_KINDS: Mapping[str, type[Density]] = {
    "spectral-gaussian": SpectralDensity,
    "binned-laplace": BinnedDensity,
    "spectral-gamma": GammaDensity,
    "coefficient-laplace": CoefficientDensity,
}


class DensitySection(ReleaseSection):
    """A smooth density of one or two numeric columns."""

    kind: Literal["density"]
    columns: list[StrictStr] = Field(min_length=1, max_length=2)
    bandwidth: float | list[float] = Field(
        description="Standard deviation of the Gaussian kernel, in units of a column's range."
    )
    mechanism: Literal[
        "spectral-gaussian", "binned-laplace", "spectral-gamma", "coefficient-laplace"
    ]

    @property
    def spends_beta(self) -> bool:
        return self.mechanism == "spectral-gaussian"

    def build(self, columns: Columns, rows: int, share: Budget) -> Release:
        domain = domain_of([declared(columns, name).axis(name) for name in self.columns])
        kind = _KINDS[self.mechanism]
        widths = one_each(self.bandwidth, self.columns)
        return kind(self.name, domain, rows, share, widths)

    @property
    def title(self) -> str:
        return listed(self.columns, " x ")
