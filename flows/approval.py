"""A disclosure officer's approval, between the last synthetic record and publication.

The ledger's word counts, however the decision got there: by the form of a suspended Prefect run, on
the terminal, or by ``dprelease approve``.  A run of a deployment suspends itself and ends; when the
form is filled in, Prefect starts it again from the top, and it finds its draws in the ledger.
"""

from typing import Literal

from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from prefect.runtime import deployment, flow_run
from pydantic import Field

from dpcore.audit import AuditResult
from schemas.plan import Plan
from tasks.announce import show_preview
from tasks.decision import find_decision, record_decision
from tasks.notify import notify
from tasks.publish import require_approved

KEY = "approval"

LINE = r"^[^\n]*\S[^\n]*$"
"""One line that is not blank."""


class Review(RunInput):
    """Approve or reject this release."""

    decision: Literal["approve", "reject"] = Field(
        description="approve publishes the bundle; reject publishes nothing, and the budget stays"
        " spent. A decision is final."
    )
    name: str = Field(
        pattern=LINE, max_length=200, description="Who decides. It is published with the bundle."
    )
    reason: str = Field(
        pattern=LINE, max_length=500, description="On what grounds. It is published too."
    )


def await_approval(plan: Plan, release_id: str, audited: list[AuditResult]) -> None:
    """Return if the release may be published; suspend the run, or raise ``ApprovalError``, if not."""
    decision = find_decision(plan, release_id)
    if decision is None and plan.publication.approval and deployment.id:
        show_preview(plan, release_id, audited)
        if flow_run.run_count == 1:  # a resumed run comes by here again
            notify(plan.dataset, release_id, "waits for a disclosure officer")
        review = suspend_flow_run(
            wait_for_input=Review.with_initial_data(
                description=f"**{plan.publication.title}**, release `{release_id}` of"
                f" `{plan.dataset}`. Read the artifact `approval-preview` of this run first."
            ),
            key=KEY,
        )
        decision = record_decision(plan, release_id, review.decision, review.name, review.reason)
    require_approved(plan, release_id, decision)
