"""A release on demand: some releases of a plan, for a part of its budget, asked for by somebody.

Prefect's form is made of this flow's parameters; ``flows.deploy`` puts the plans that there are into
it.  What the form lets through is checked again here, for staff can switch its checks off.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from prefect import flow
from pydantic import Field

from dpcore.errors import InputError
from flows.identity import own_release_id
from flows.notify import HOOKS
from flows.release import carry_out
from schemas.plan import Plan, load_plan
from schemas.selection import select
from tasks.announce import show_explanation
from tasks.plans import plans_folder, plans_in, published_folder


@flow(
    name="ad hoc release",
    flow_run_name="ad hoc release: {plan}, for {requester}",
    log_prints=False,
    persist_result=False,
    **HOOKS,
)
def ad_hoc(
    plan: str,
    *,
    releases: list[str] = [],  # noqa: B006 - the form shows it, and nobody changes it
    percent_of_budget: Annotated[int, Field(ge=1, le=100)] = 100,
    title: Annotated[str, Field(max_length=200)] = "",
    requester: Annotated[str, Field(min_length=1, max_length=200)],
) -> str:
    """Publish some releases of a plan, once.

    The artifact `cost-and-accuracy` of the run tells at once what it costs and how wrong the numbers
    may be. The budget is spent when the noise is drawn, and is never given back.

    Args:
        plan: What to release from.
        releases: Which releases of the chosen plan, as PLAN: RELEASE. None chosen means all of them.
        percent_of_budget: Per cent (1 to 100) of the alpha, beta and gamma that the plan asks for. The
            chosen releases share it by their weights.
        title: Title of the bundle. Left empty, it is the plan's own.
        requester: Who asks. It is published with the bundle and kept in the ledger.
    """
    chosen = choose(plan, releases, percent_of_budget, title, requester)
    show_explanation(chosen)
    return carry_out(chosen, own_release_id(plan), published_folder())


def choose(plan: str, releases: Sequence[str], percent: int, title: str, requester: str) -> Plan:
    """The plan that the form asks for; raises ``InputError`` for a choice that cannot be."""
    known: dict[str, Path] = plans_in(plans_folder())
    if plan not in known:
        raise InputError(f"plan: there is no plan {plan!r}; there is {', '.join(known) or 'none'}")
    if not isinstance(requester, str) or not requester.strip():
        raise InputError("requester: say who asks")
    names = []
    for choice in releases:
        of, _, name = choice.rpartition(": ")
        if of not in ("", plan):
            raise InputError(
                f"releases: {choice!r} is not of the plan {plan!r}; choose releases of one plan"
            )
        names.append(name)
    return select(load_plan(known[plan]), names, percent, title.strip(), requester.strip())
