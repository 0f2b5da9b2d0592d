"""The ad hoc flow: publishes releases of a plan, or answers wishes, for part of the plan's budget.

Prefect makes its form from this flow's parameters; ``deployment.deploy`` adds the releases and columns
that plans open to requests as choices.  The flow checks its parameters again, because anybody can switch
the form's checks off.  The ledger adds up what the requests spend.
"""

from typing import Annotated

from pydantic import Field

from flows.course import carry_out
from flows.deployed import deployed_run
from flows.operation.embedded import flow
from flows.operation.form import LINE, await_submission, await_token
from flows.operation.identity import current_run, own_release_id
from flows.operation.notify import HOOKS
from flows.question import NOTHING, asked_before, select_releases
from schemas.first_plan.wishes import Said
from tasks.announce.announce import show_earlier, show_explanation
from tasks.budget.charge import require_budget
from tasks.bundle.publish import require_approved
from tasks.ledger import ledger_if_any
from tasks.workplace.job import ReleaseJob

Wishes = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=300, pattern=LINE)]], Field(max_length=10)
]


@flow(
    name="ad hoc release",
    flow_run_name="ad hoc release: {plan}, for {requester}",
    **HOOKS,
)
def ad_hoc(
    plan: str,
    *,
    releases: list[str] = [],  # noqa: B006 - the form shows the default, and no code changes it
    records: bool = False,
    tables: Wishes = [],  # noqa: B006
    means: Wishes = [],  # noqa: B006
    densities: Wishes = [],  # noqa: B006
    models: Wishes = [],  # noqa: B006
    maps: Wishes = [],  # noqa: B006
    alpha: Annotated[str, Field(max_length=60)] = "",
    title: Annotated[str, Field(max_length=200)] = "",
    dry_run: bool = False,
    requester: Annotated[str, Field(min_length=1, max_length=200, pattern=LINE)],
) -> str:
    """Publish some releases of a plan, or statistics on its columns that you wish for, once.

    Wishes name columns that the plan opens to them. The run chooses the releases that answer them best.
    The run's artifact `cost-and-accuracy` shows at once what the release costs and how accurate it will
    be. The budget is spent when the noise is drawn, and is never given back. If the question was asked
    before, the answer is the earlier bundle, and costs nothing.

    Args:
        plan: The name of a plan in the folder of plans.
        releases: Releases of the chosen plan, as PLAN: RELEASE. If you choose none and have no wishes:
            all releases that may be requested.
        records: Whether to make synthetic records of all columns that the plan opens to wishes.
        tables: Counts of all combinations, such as "health x visits".
        means: Means, such as "income by region".
        densities: Columns of numbers of which to draw a curve, such as "income".
        models: Models, such as "visits ~ chronic + insurance".
        maps: Densities of two columns, such as "longitude latitude".
        alpha: The cost of all these releases together, such as 0.5; they share it by their weights. If
            empty, the amount that the plan requests, which is also the maximum. All requests together
            spend at most the part of the grant that the plan opens.
        title: Title of the bundle. If empty, the wishes or the plan's title.
        dry_run: First only show what the release costs, how accurate it is and what is left of the
            grant, and charge nothing. The run then waits a week; press Resume to publish. Runs with
            wishes, or for datasets whose analysts have allowances, always wait.
        requester: Your name, as the agency wrote it if it gave you an allowance. It is published with
            the bundle and recorded in the ledger.

    Returns:
        The path of the bundle.

    Raises:
        InputError: The choice is impossible, or the survey is not as the plan declares; or a dry run was
            started outside a deployment, where nobody could resume it.
        BudgetError: The dataset has too little budget left. Nothing was charged.
        AuditError: The audit found more privacy loss than is claimed. Nothing was charged.
        ApprovalError: A disclosure officer has not approved the release, or has rejected it.
    """
    if current_run().deployment_id:
        deployed_run()
    said = Said(
        records=records,
        tables=tuple(tables),
        means=tuple(means),
        densities=tuple(densities),
        maps=tuple(maps),
        models=tuple(models),
    )
    chosen, open_fraction = select_releases(plan, releases, alpha, title, requester, said)
    job = ReleaseJob(chosen, own_release_id(plan), open_fraction=open_fraction)
    ledger = ledger_if_any()
    allowances = ledger.allowances(chosen.dataset) if ledger else {}
    # A run that has charged its release continues with it, even if others published an answer since.
    if ledger and not ledger.release(chosen.dataset, job.release_id):
        if allowances:
            ledger.allowance(chosen.dataset, chosen.publication.requester)  # raises without one
        if before := asked_before(chosen, plan, ledger):
            show_earlier(str(before))
            earlier = ReleaseJob(before.plan, before.release_id, open_fraction=open_fraction)
            require_approved(earlier, ledger.decision(chosen.dataset, before.release_id))
            return carry_out(earlier)
    show_explanation(chosen)
    if ledger and allowances:
        if not ledger.release(chosen.dataset, job.release_id):
            require_budget(job, ledger)
            await_token(chosen)
    elif dry_run or said != NOTHING:
        await_submission(chosen)
    return carry_out(job)
