"""The ad hoc flow: some releases of a plan, for a part of its budget, on request.

Prefect makes its form from this flow's parameters; ``flows.deploy`` adds the known plans as choices.
The flow checks its parameters again, because an operator can switch the form's checks off.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dpcore.errors import InputError
from flows.course import carry_out
from flows.embedded import flow
from flows.form import LINE, await_submission
from flows.identity import own_release_id
from flows.notify import HOOKS
from schemas.plan import Plan, load_plan
from schemas.selection import select
from tasks.announce.announce import show_explanation
from tasks.workplace.plans import plans_folder, plans_in, published_folder


@flow(
    name="ad hoc release",
    flow_run_name="ad hoc release: {plan}, for {requester}",
    **HOOKS,
)
def ad_hoc(
    plan: str,
    *,
    releases: list[str] = [],  # noqa: B006 - the form shows the default, and nothing changes it
    percent_of_budget: Annotated[int, Field(ge=1, le=100)] = 100,
    title: Annotated[str, Field(max_length=200)] = "",
    dry_run: bool = False,
    requester: Annotated[str, Field(min_length=1, max_length=200, pattern=LINE)],
) -> str:
    """Publish some releases of a plan, once.

    The run's artifact `cost-and-accuracy` shows at once what the release costs and how wrong its
    numbers may be. The budget is spent when the noise is drawn, and is never given back.

    Args:
        plan: The name of a plan in the folder of plans.
        releases: Which releases of the chosen plan, as PLAN: RELEASE. None chosen means all of them.
        percent_of_budget: Per cent (1 to 100) of the alpha, beta and gamma that the plan asks for. The
            chosen releases share it by their weights.
        title: Title of the bundle. If empty, the plan's title is used.
        dry_run: First only show what the release costs, how accurate it is and what is left of the
            grant, and charge nothing. The run then waits a week: Resume publishes.
        requester: Your name. It is published with the bundle and recorded in the ledger.

    Returns:
        The path of the bundle.

    Raises:
        InputError: The choice is impossible, or the survey is not as the plan declares; or a dry run
            is not of a deployment, and nobody could resume it.
        BudgetError: The dataset has too little budget left. Nothing was charged.
        AuditError: The audit found more privacy loss than is claimed. Nothing was charged.
        ApprovalError: A disclosure officer has not approved the release, or has rejected it.
    """
    chosen = select_releases(plan, releases, percent_of_budget, title, requester)
    show_explanation(chosen)
    if dry_run:
        await_submission()
    return carry_out(chosen, own_release_id(plan), published_folder())


def select_releases(
    plan: str, releases: Sequence[str], percent: int, title: str, requester: str
) -> Plan:
    """The plan that the form asks for; raises ``InputError`` for an impossible choice."""
    known: dict[str, Path] = plans_in(plans_folder())
    if plan not in known:
        raise InputError(
            f"plan: there is no plan {plan!r}; the plans: {', '.join(known) or 'none'}"
        )
    if not isinstance(requester, str) or not requester.strip():
        raise InputError("requester: write who asks for the release")
    names = []
    for choice in releases:
        of, _, name = choice.rpartition(": ")
        if of not in ("", plan):
            raise InputError(
                f"releases: {choice!r} does not belong to the plan {plan!r}; choose releases of one"
                " plan"
            )
        names.append(name)
    return select(load_plan(known[plan]), names, percent, title.strip(), requester.strip())
