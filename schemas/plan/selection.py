"""Makes a plan of some releases of another plan, or of others, for a part of its budget.

The result is an ordinary plan with its own digest, so ledger, audit and bundle need not know its
origin.
"""

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpcore.errors import InputError, PlanError
from dpcore.suggestion import suggestion
from schemas.document import explain_errors
from schemas.plan import Plan
from schemas.plan.synthesis import UNIFORM
from schemas.releases import AnyRelease
from schemas.releases.density import BEST

RELEASES = TypeAdapter[list[AnyRelease]](list[AnyRelease])


def select(
    plan: Plan, releases: Sequence[str], percent: int, title: str = "", requester: str = ""
) -> Plan:
    """The plan with only these releases, at ``percent`` of the budget that it requests.

    An empty ``releases`` means all.  The chosen releases share the budget by their weights.  A synthetic
    table stays if its release stays; values inside bins no longer follow a release that is not chosen.
    It opens no requests.  Raises ``InputError`` for an unknown release, and as ``smaller`` does.
    """
    names = [section.name for section in plan.releases]
    for name in releases:
        if name not in names:
            raise InputError(
                f"the plan has no release {name!r}; its releases: {', '.join(names)}"
                f"{suggestion(name, names)}"
            )
    chosen = set(releases or names) | set(plan.finding)
    document = plan.model_dump(mode="json", by_alias=True)
    kept = {
        "releases": [r for r in document["releases"] if r["name"] in chosen],
        "synthesis": [
            table | {"within_bins": _kept(table["within_bins"], chosen)}
            for table in document["synthesis"]
            if table["from"] in chosen
        ],
    }
    return smaller(plan, kept, percent, title, requester)


def smaller(
    plan: Plan, sections: Mapping[str, Any], percent: int, title: str = "", requester: str = ""
) -> Plan:
    """The plan with these sections in the place of its own, at ``percent`` of what it requests.

    ``sections``: ``releases``, and others by key.  Beta and gamma are requested only if a release can
    spend them.  Raises ``InputError`` for an invalid percentage, ``PlanError`` if the result is not a
    valid plan.
    """
    if plan.series:
        raise InputError("a series is released as a whole, one run for each period: run its plan")
    if isinstance(percent, bool) or not isinstance(percent, int) or not 1 <= percent <= 100:
        raise InputError(
            f"percent_of_budget: must be a whole number from 1 to 100, not {percent!r}"
        )
    document = plan.model_dump(mode="json", by_alias=True) | dict(sections)
    asked, rule = plan.requested * Fraction(percent, 100), plan.budget.composition
    try:
        releases = RELEASES.validate_python(document["releases"])
    except ValidationError:  # which the plan then says in its words
        releases = []
    spends_beta = any(
        s.spends_beta(rule) or (s.mechanism == BEST and rule == "basic") for s in releases
    )
    document["budget"]["requested"] = asked.as_strings() | {
        "beta": str(asked.beta if spends_beta else 0),
        "gamma": str(asked.gamma if any(s.spends_gamma for s in releases) else 0),
    }
    document["operation"]["requests"] = None
    document["publication"] |= _words(plan, title, requester)
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        raise PlanError(
            f"this selection is not a valid plan\n{explain_errors(error, document, Plan)}"
        ) from None


def _kept(within_bins: Mapping[str, str], chosen: Set[str]) -> dict[str, str]:
    return {column: name for column, name in within_bins.items() if name in {*chosen, UNIFORM}}


def _words(plan: Plan, title: str, requester: str) -> dict[str, Any]:
    return {
        "title": title or plan.publication.title,
        "requester": requester or plan.publication.requester,
    }
