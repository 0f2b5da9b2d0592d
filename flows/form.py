"""The form of a suspended Prefect run, in which a disclosure officer decides about a release.

A run of a deployment suspends itself and ends; when the form is filled in, Prefect starts it again from
the beginning, and it finds its draws in the ledger.
"""

from typing import Literal

from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from prefect.runtime import deployment, flow_run
from pydantic import Field

from dpcore.audit import AuditResult
from schemas.plan import Plan
from tasks.announce.announce import show_preview
from tasks.announce.markdown import escape
from tasks.ledger import Decision, Ledger
from tasks.workplace.home import ledger_url
from tasks.workplace.notify import notify
from tasks.workplace.step import step

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
        pattern=LINE, max_length=200, description="Your name. It is published with the bundle."
    )
    reason: str = Field(
        pattern=LINE, max_length=500, description="The reason. It is published too."
    )


def ask_in_form(plan: Plan, release_id: str, audited: list[AuditResult]) -> Decision | None:
    """The officer's decision, for which a run of a deployment suspends itself; None in other runs."""
    if not deployment.id:
        return None
    show_preview(plan, release_id, audited)
    if flow_run.run_count == 1:  # a resumed run notified before
        notify(plan.dataset, release_id, "waits for a disclosure officer")
    review = suspend_flow_run(
        wait_for_input=Review.with_initial_data(
            description=f"**{escape(plan.publication.title)}**, release `{release_id}` of"
            f" `{plan.dataset}`. Read the artifact `approval-preview` of this run first."
        ),
        key=KEY,
    )
    return record_decision(plan, release_id, review)


@step("record the decision")
def record_decision(plan: Plan, release_id: str, review: Review) -> Decision:
    """Record an officer's decision in the ledger, for good."""
    approved = review.decision == "approve"
    return Ledger(ledger_url()).decide(
        plan.dataset, release_id, approved, who=review.name, why=review.reason
    )
