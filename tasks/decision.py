"""A disclosure officer's decision, in and out of the ledger."""

from schemas.plan import Plan
from tasks.home import ledger_url
from tasks.ledger import Decision, Ledger
from tasks.step import step


def find_decision(plan: Plan, release_id: str) -> Decision | None:
    """What was decided on a release; None where nothing was."""
    return Ledger(ledger_url()).decision(plan.dataset, release_id)


@step("record the decision")
def record_decision(plan: Plan, release_id: str, verdict: str, who: str, why: str) -> Decision:
    """Put a decision, "approve" or anything else for a rejection, into the ledger, for good."""
    ledger = Ledger(ledger_url())
    return ledger.decide(plan.dataset, release_id, verdict == "approve", who=who, why=why)
