"""Chooses the mechanism for ``best`` of a density: the smallest total error, from the plan alone.

All mechanisms get the same weight and bandwidth. Their error is the typical noise plus a bound on the
truncation error, relative to a uniform density.
"""

from dpcore.releases.abilities import EstimatesDensity
from schemas.plan.contents import PlanDocument
from schemas.releases.base import ReleaseSection
from schemas.releases.density import DensitySection

COMPARED = ("spectral-gaussian", "binned-laplace")
"""Only these are compared, because the meaning of a plan must not depend on installed packages."""


def chosen(plan: PlanDocument, place: int) -> ReleaseSection:
    """The section with the mechanism for ``best``. If none is possible, the simplest mechanism, whose
    error message gives the reason."""
    stated = plan.releases[place]
    found: list[tuple[float, int, ReleaseSection]] = []
    for i, mechanism in enumerate(COMPARED):
        keys = stated.model_dump(mode="json", by_alias=True) | {"mechanism": mechanism}
        try:
            section = DensitySection.model_validate(keys)
            # Only one mechanism spends beta, so the choice changes every release's share of beta.
            changed = plan.changed(
                releases=[section if j == place else s for j, s in enumerate(plan.releases)]
            )
            release = changed.release(section, changed.shares[place])
            assert isinstance(release, EstimatesDensity)
            # Position breaks ties, because sections cannot be compared.
            found.append((release.whole_error, i, section))
        except ValueError:  # cannot truncate or cannot use groups, or the share is too small
            continue
    if found:
        return min(found)[2]
    return stated.model_copy(update={"mechanism": "binned-laplace", "terms": None})
