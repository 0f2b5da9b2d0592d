"""What else could estimate the density of a plan's columns, and which is best: from the plan alone.

A density by each of its mechanisms, and a function, at the same weight and bandwidth.  Their errors are
compared whole: the typical noise and the bounds of all that is left out, relative to a uniform density.
A function is compared too, but it is not a choice of ``mechanism: best``: it is another estimate, which
is not reflected at the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self

from dpcore.accounting.budget import Budget
from dpcore.releases.abilities import EstimatesDensity
from dpcore.releases.base import Release
from schemas.releases.base import ReleaseSection
from schemas.releases.density import BEST, DensitySection
from schemas.releases.function import FunctionSection

COMPARED = ("spectral-gaussian", "binned-laplace")
"""What a plan means must not depend on the packages that are installed, so theirs are not compared."""


class PlanShares(Protocol):
    """What a plan knows of its releases and of their shares."""

    @property
    def releases(self) -> Sequence[Any]: ...

    @property
    def shares(self) -> Sequence[Budget]: ...

    def changed(self, **sections: Any) -> Self: ...

    def release(self, section: Any, share: Budget) -> Release: ...


class DensityChoice(NamedTuple):
    """A section of a plan, and the release that it would be in the plan."""

    section: ReleaseSection
    release: EstimatesDensity

    @property
    def error(self) -> float:
        """The whole error."""
        return self.release.whole_error


def ways(plan: PlanShares, place: int) -> Iterator[DensityChoice]:
    """All ways that the plan's budget allows to release the density of one section's columns."""
    for section in _sections(plan.releases[place]):
        changed = plan.changed(
            releases=[section if i == place else s for i, s in enumerate(plan.releases)]
        )
        try:
            release = changed.release(section, changed.shares[place])
            assert isinstance(release, EstimatesDensity)
            way = DensityChoice(section, release)
            _ = way.error  # raises where the share buys no noise
        except ValueError:
            continue
        yield way


def chosen(plan: PlanShares, place: int) -> ReleaseSection:
    """The section with the mechanism that ``best`` means; where none serves, the simplest one, whose
    refusal says why."""
    section: ReleaseSection = plan.releases[place]
    found = [way for way in ways(plan, place) if way.section.kind == section.kind]
    if found:
        return min(found, key=lambda way: way.error).section
    return section.model_copy(update={"mechanism": "binned-laplace", "terms": None})


def _sections(section: ReleaseSection) -> Iterator[ReleaseSection]:
    """The section by each mechanism that knows its keys, and as the other kind where that exists."""
    if not isinstance(section, DensitySection | FunctionSection):
        return
    known = section.model_dump(mode="json", by_alias=True)
    keys = ("name", "weight", "columns", "bandwidth", "transform")
    shared = {key: known[key] for key in keys if key in known}
    own = known if isinstance(section, DensitySection) else shared
    names = dict.fromkeys(COMPARED)
    if isinstance(section, DensitySection) and section.mechanism != BEST:
        names[section.mechanism] = None
    for mechanism in names:
        try:
            yield DensitySection.model_validate(own | {"kind": "density", "mechanism": mechanism})
        except ValueError:  # it is not truncated, or not for groups
            continue
    if isinstance(section, FunctionSection):
        yield section
    elif section.boundary == "reflected" and not section.groups:
        yield FunctionSection.model_validate(shared | {"kind": "function"})
