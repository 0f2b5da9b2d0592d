"""From what somebody asks of a plan that opens something to requests, to a plan of its own.

The form (``flows.ad_hoc``) and ``dprelease ask`` ask in the same way: the agency's plan says what may be
asked for, the planner serves the wishes, and the ledger adds up what is spent.
"""

from collections.abc import Sequence
from fractions import Fraction

from dpcore.errors import InputError
from schemas.first_plan.opened import planned
from schemas.first_plan.wishes import Said
from schemas.plan import Plan, load_plan
from schemas.plan.selection import asked_for, select
from tasks.explain.analysis import model_error
from tasks.workplace.plans import known_plan

NOTHING = Said()


def select_releases(
    plan: str,
    releases: Sequence[str],
    alpha: str,
    title: str,
    requester: str,
    said: Said = NOTHING,
) -> tuple[Plan, Fraction]:
    """The plan that is asked for, and the part of the grant that all requests may spend.

    Without a title, wishes are the title.  Raises ``InputError`` for an impossible choice, or one that
    the plan does not open.
    """
    agency = load_plan(known_plan(plan))
    requests = agency.operation.requests
    if requests is None:
        raise InputError(
            f"plan: {plan!r} opens nothing to requests; its author can, with operation.requests"
        )
    if not isinstance(requester, str) or not requester.strip():
        raise InputError("requester: write who asks for the release")
    title, requester, asked = title.strip(), requester.strip(), asked_for(agency, alpha)
    if said != NOTHING:
        if releases:
            raise InputError(
                "releases: choose none where there are wishes; ask for them in another run"
            )
        if not requests.columns:
            raise InputError(f"plan: {plan!r} opens no columns to wishes, only releases")
        asks = (requests.columns, said, asked, title or said.title, requester)
        return planned(agency, *asks, model_error), requests.part
    if not requests.releases:
        raise InputError(
            f"plan: {plan!r} opens no releases; write wishes over {', '.join(requests.columns)}"
        )
    names = []
    for choice in releases:
        of, _, name = choice.rpartition(": ")
        if of not in ("", plan):
            raise InputError(
                f"releases: {choice!r} does not belong to the plan {plan!r}; choose releases of one"
                " plan"
            )
        names.append(name)
    names = names or requests.releases
    chosen = select(agency, names, asked, title, requester)
    for name in names:
        if name not in requests.releases:
            raise InputError(
                f"releases: {name!r} may not be requested; the plan opens"
                f" {', '.join(requests.releases)}"
            )
    return chosen, requests.part
