"""Chooses the mechanism for ``best`` of a density: the smallest total error according to the plan alone.

The errors are compared at the same weight and bandwidth. Each error is the typical noise plus a bound on
the truncation of the mechanism, relative to a uniform density.
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
            # Only one of them spends beta, so each choice divides it differently among the releases.
            changed = plan.changed(
                releases=[section if j == place else s for j, s in enumerate(plan.releases)]
            )
            release = changed.release(section, changed.shares[place])
            assert isinstance(release, EstimatesDensity)
            # The place decides between equal errors, because sections have no order.
            found.append((release.whole_error, i, section))
        except ValueError:  # not truncated or not for groups, or the share buys no noise
            continue
    if found:
        return min(found)[2]
    return stated.model_copy(update={"mechanism": "binned-laplace", "terms": None})
