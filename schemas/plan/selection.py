"""Makes a plan from some releases of another plan, or from new releases, for part of its budget.

The result is an ordinary plan with its own digest, so ledger, audit and bundle need not know its
origin.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpcore.accounting.budget import Budget, decimal_text
from dpcore.accounting.concentrated import caps
from dpcore.accounting.digits import round_down
from dpcore.errors import InputError, PlanError
from dpcore.suggestion import suggestion
from schemas.document import faults_of, written_faults
from schemas.numbers import read_rational
from schemas.plan import Plan
from schemas.plan.synthesis import UNIFORM
from schemas.releases import AnyRelease
from schemas.releases.density import BEST

RELEASES = TypeAdapter[list[AnyRelease]](list[AnyRelease])


def asked_for(plan: Plan, alpha: str) -> Budget:
    """The price of a request of this alpha; beta and gamma are reduced in the same proportion.

    Under concentrated composition the alpha applies at the grant's beta. Without an alpha, the price is
    the plan's whole request.  Raises ``InputError`` for text that is not a valid amount, and for an
    amount above the plan's request.
    """
    whole = plan.requested
    if not alpha:
        return whole
    try:
        wanted = read_rational(alpha.strip())
        if not wanted:
            raise ValueError("must be positive")
        coordinate, loss = whole.coordinates[0], wanted
        if whole.rho:
            promise = Budget(wanted, plan.budget.granted.beta)
            loss = caps(plan.budget.composition, promise).rho
    except (ValueError, OverflowError) as error:
        raise InputError(f"alpha: {alpha[:60]!r}: {error}") from None
    share = loss / whole.loss
    if share > 1:
        raise InputError(
            f"alpha: {alpha} is more than one release of the plan may cost ({coordinate}"
            f" {decimal_text(whole.loss)}); request less"
        )
    # Rounded, because plans limit the digits of numbers; down, because the grant is a cap.
    beta, gamma = (round_down(each * share) if each else each for each in (whole.beta, whole.gamma))
    return Budget(beta=beta, gamma=gamma, **{coordinate: loss})


def select(
    plan: Plan,
    releases: Sequence[str],
    asked: Budget | None = None,
    title: str = "",
    requester: str = "",
) -> Plan:
    """The plan with only these releases, for ``asked`` or the plan's whole request.

    An empty ``releases`` means all.  The chosen releases share the budget by their weights.  A synthetic
    table stays if its release stays. Values inside bins no longer follow releases that are not chosen.
    The new plan is not open to requests.  Raises ``InputError`` for an unknown release, and in the same
    cases as ``smaller``.
    """
    names = [section.name for section in plan.releases]
    for name in releases:
        if name not in names:
            raise InputError(
                f"the plan has no release {name!r}; its releases: {', '.join(names)}"
                f"{suggestion(name, names)}"
            )
    # Searches are kept: without them the plan would get other searches, at another price.
    chosen = set(releases or names) | set(plan.finding)
    document = plan.model_dump(mode="json", by_alias=True)
    kept = {
        "releases": [r for r in document["releases"] if r["name"] in chosen],
        "synthesis": [
            table
            | {
                "within_bins": {
                    column: name
                    for column, name in table["within_bins"].items()
                    if name in {*chosen, UNIFORM}
                }
            }
            for table in document["synthesis"]
            if table["from"] in chosen
        ],
    }
    return smaller(plan, kept, asked or plan.requested, title, requester)


def smaller(
    plan: Plan, sections: Mapping[str, Any], asked: Budget, title: str = "", requester: str = ""
) -> Plan:
    """The plan with its sections replaced by these, for the budget ``asked`` (see ``asked_for``).

    ``sections``: ``releases``, and others by key.  Beta and gamma are requested only if a release can
    spend them.  Raises ``InputError`` for a series, ``PlanError`` if the result is not a valid plan.
    """
    if plan.series:
        raise InputError("a series is released as a whole, one run per period; run its plan")
    document = plan.model_dump(mode="json", by_alias=True) | dict(sections)
    rule = plan.budget.composition
    try:
        releases = RELEASES.validate_python(document["releases"])
    except ValidationError:  # the validation below refuses them too, and names each place
        releases = []
    spends_beta = any(
        s.spends_beta(rule) or (s.mechanism == BEST and rule == "basic") for s in releases
    )
    document["budget"]["requested"] = asked.as_strings() | {
        "beta": str(asked.beta if spends_beta else 0),
        "gamma": str(asked.gamma if any(s.spends_gamma for s in releases) else 0),
    }
    document["operation"]["requests"] = None
    document["publication"] |= {
        "title": title or plan.publication.title,
        "requester": requester or plan.publication.requester,
    }
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        raise PlanError(
            f"this selection is not a valid plan\n{written_faults(faults_of(error, document, Plan))}"
        ) from None
