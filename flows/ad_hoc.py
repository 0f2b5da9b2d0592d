"""The ad hoc flow: some releases of a plan, or wishes over its columns, for a part of its budget.

Prefect makes its form from this flow's parameters; ``deployment.deploy`` adds as choices what plans
open to requests.  The flow checks its parameters again, because everybody can switch the form's checks
off, and the ledger adds up what was requested.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from dpcore.errors import InputError
from flows.course import carry_out
from flows.deployed import deployed_run
from flows.operation.embedded import flow
from flows.operation.form import LINE, await_submission
from flows.operation.identity import current_run, own_release_id
from flows.operation.notify import HOOKS
from schemas.first_plan.opened import planned
from schemas.first_plan.wishes import Said
from schemas.plan import Plan, load_plan
from schemas.plan.selection import select
from tasks.announce.announce import show_explanation
from tasks.explain.analysis import model_error
from tasks.workplace.plans import known_plan, published_folder

Wishes = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=300, pattern=LINE)]], Field(max_length=10)
]
NOTHING = Said()


@flow(
    name="ad hoc release",
    flow_run_name="ad hoc release: {plan}, for {requester}",
    **HOOKS,
)
def ad_hoc(
    plan: str,
    *,
    releases: list[str] = [],  # noqa: B006 - the form shows the default, and nothing changes it
    records: bool = False,
    tables: Wishes = [],  # noqa: B006
    means: Wishes = [],  # noqa: B006
    densities: Wishes = [],  # noqa: B006
    models: Wishes = [],  # noqa: B006
    maps: Wishes = [],  # noqa: B006
    percent_of_budget: Annotated[int, Field(ge=1, le=100)] = 100,
    title: Annotated[str, Field(max_length=200)] = "",
    dry_run: bool = False,
    requester: Annotated[str, Field(min_length=1, max_length=200, pattern=LINE)],
) -> str:
    """Publish some releases of a plan, or what is wished for over its columns, once.

    Wishes name columns that the plan opens to them, and are served by the releases that suit them best.
    The run's artifact `cost-and-accuracy` shows at once what the release costs and how wrong its
    numbers may be. The budget is spent when the noise is drawn, and is never given back.

    Args:
        plan: The name of a plan in the folder of plans.
        releases: Which releases of the chosen plan, as PLAN: RELEASE. None chosen means all that
            may be requested, unless there are wishes.
        records: Whether to make synthetic records of all columns that the plan opens to wishes.
        tables: Counts of all combinations, such as "health x visits".
        means: Means, such as "income by region".
        densities: Columns of numbers of which to draw a curve, such as "income".
        models: Models, such as "visits ~ chronic + insurance".
        maps: Densities of two columns, such as "longitude latitude".
        percent_of_budget: Per cent (1 to 100) of the alpha, beta and gamma that the plan asks for. The
            chosen releases share it by their weights. All requests together spend no more than the
            part of the grant that the plan opens.
        title: Title of the bundle. If empty, the plan's title is used.
        dry_run: First only show what the release costs, how accurate it is and what is left of the
            grant, and charge nothing. The run then waits a week: Resume publishes. With wishes this
            is always so.
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
    if current_run().deployment_id:
        deployed_run()
    said = Said(None, records, *map(tuple, (tables, means, densities, models, maps)))
    chosen, part = select_releases(plan, releases, percent_of_budget, title, requester, said)
    show_explanation(chosen)
    if dry_run or said != NOTHING:
        await_submission(chosen)
    return carry_out(chosen, own_release_id(plan), published_folder(), part)


def select_releases(
    plan: str,
    releases: Sequence[str],
    percent: int,
    title: str,
    requester: str,
    said: Said = NOTHING,
) -> tuple[Plan, Fraction]:
    """The plan that the form asks for, and the part of the grant that all requests may spend.

    Raises ``InputError`` for an impossible choice, or one that the plan does not open.
    """
    asked = load_plan(known_plan(plan))
    requests = asked.operation.requests
    if requests is None:
        raise InputError(
            f"plan: {plan!r} opens nothing to requests; its author can, with operation.requests"
        )
    if not isinstance(requester, str) or not requester.strip():
        raise InputError("requester: write who asks for the release")
    title, requester = title.strip(), requester.strip()
    if said != NOTHING:
        if releases:
            raise InputError(
                "releases: choose none where there are wishes; ask for them in another run"
            )
        if not requests.columns:
            raise InputError(f"plan: {plan!r} opens no columns to wishes, only releases")
        asks = (requests.columns, said, percent, title, requester)
        return planned(asked, *asks, model_error), requests.part
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
    chosen = select(asked, names, percent, title, requester)
    for name in names:
        if name not in requests.releases:
            raise InputError(
                f"releases: {name!r} may not be requested; the plan opens"
                f" {', '.join(requests.releases)}"
            )
    return chosen, requests.part
