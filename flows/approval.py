"""A disclosure officer's approval: after all tables and records are made, before publication.

The first decision in the ledger counts, whether it came from the form of a suspended Prefect run
(``flows.operation.form``), the terminal or ``dprelease approve``.
"""

from tasks.bundle.publish import PreparedBundle, require_approved
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tasks.workplace.step import in_flow_run


def await_approval(job: ReleaseJob, made: PreparedBundle) -> None:
    """Return if the release may be published; otherwise suspend the run or raise ``ApprovalError``."""
    ledger = Ledger(ledger_url())
    decision = ledger.decision(job.dataset, job.release_id)
    if job.plan.publication.approval:
        # Recorded first, because `dprelease approve` looks here for a waiting run.
        ledger.ask_approval(job.dataset, job.release_id)
        if in_flow_run():
            from flows.operation.form import ask_in_form

            decision = ask_in_form(job, made, decision)
    require_approved(job, decision)
