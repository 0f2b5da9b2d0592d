"""The form of a suspended Prefect run, in which a disclosure officer decides about a release.

A run of a deployment suspends itself and ends. When somebody fills in the form, Prefect starts the run
again, and it finds its draws and the decision in the ledger (``flows.operation.decisions``).
"""

from itertools import pairwise
from typing import Any, Literal
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.exceptions import Pause
from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from prefect.runtime import deployment, flow_run
from pydantic import Field

from dpcore.errors import InputError
from flows.operation.decisions import APPROVAL, CONSENT
from flows.operation.lost import say_that_it_waits
from flows.operation.once import notify_once
from schemas.plan import Plan
from schemas.text import escape
from tasks.announce.announce import show_preview
from tasks.bundle.publish import PreparedBundle
from tasks.ledger import Decision, Ledger
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tasks.workplace.step import step

SUBMISSION = "submission"
DAY = 24 * 3600
WEEK = 7 * DAY

UNSEEN = (
    r"\x00-\x1f\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
)
LINE = rf"^[^{UNSEEN}]*[^{UNSEEN}\s][^{UNSEEN}]*$"
"""One printable line that is not blank and does not change the direction of text, as the ledger
requires."""


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


def ask_in_form(job: ReleaseJob, made: PreparedBundle, known: Decision | None) -> Decision | None:
    """Return the officer's decision; without a ``known`` one, a run of a deployment suspends itself.

    The run waits the number of days in the plan, and then fails; the command line still accepts a
    decision.  Plain Prefect servers accept the form without recording the decision, so it is recorded
    here; raises ``LedgerError`` if it contradicts an earlier one.
    """
    # An answered form is read even if a decision is known, because it may contradict the decision.
    if not deployment.id or (known and True not in _answers(APPROVAL)):
        return known
    show_preview(job, made)
    waits = "waits for a disclosure officer"
    notify_once(job.dataset, job.release_id, waits, f"{job.release_id} {waits}")
    review = _suspended(
        wait_for_input=Review.with_initial_data(
            description=f"**{escape(job.plan.publication.title)}**, release `{job.release_id}` of"
            f" `{job.dataset}`. Read the artifact `approval-preview` of this run first."
        ),
        timeout=job.plan.operation.decide_within * DAY,
        key=APPROVAL,
    )
    return record_decision(job, review)


def await_submission(plan: Plan) -> None:
    """Suspend a run of a deployment, which has charged nothing, until somebody presses Resume.

    If the agency changes the plan meanwhile, the run waits for a new answer.
    """
    if not deployment.id:
        raise InputError(
            "dry_run: only a run of a deployment can wait; use `dprelease explain` elsewhere"
        )
    _suspended(key=f"{SUBMISSION}-{plan.digest}", timeout=WEEK)


class Consent(RunInput):
    """Charge this release to your allowance."""

    token: str = Field(
        min_length=1,
        max_length=100,
        description="The token of your allowance: the server checks it and stores only a proof of it.",
    )


def await_token(plan: Plan) -> None:
    """Suspend a run of a deployment, which has charged nothing, until its analyst agrees to this plan.

    The server replaces the token by a proof (``flows.operation.decisions``), because everybody who can
    open Prefect's page can read the forms.  Raises ``InputError`` if the server stored the token itself.
    """
    if not deployment.id:
        raise InputError("only a run of a deployment can wait for a token; use `dprelease ask`")
    requester = plan.publication.requester
    given = _suspended(
        wait_for_input=Consent.with_initial_data(
            description=f"{escape(requester)}: read the artifact `cost-and-accuracy` of this run first."
            " Your token charges the release to your allowance, and publishes it."
        ),
        timeout=WEEK,
        key=f"{CONSENT}-{plan.digest}",
    )
    allowance = Ledger(ledger_url()).allowance(plan.dataset, requester)
    if given.token != allowance.proof(f"{flow_run.id} {plan.digest}"):
        raise InputError(
            "token: this Prefect server stored the form as it was sent, so that others can read the"
            " token. Ask the agency for a new one, and to start the server with `dprelease serve` or"
            " `python -m flows.operation.pages`; nothing was charged"
        )


def _suspended(key: str, **options: Any) -> Any:
    """Suspend this run; once a person has resumed it, return the contents of the form."""
    # A retry of a run that ended while it waited needs another key: Prefect uses each key only once per
    # run.
    unanswered = _answers(key).count(False)
    try:
        return suspend_flow_run(key=f"{key}-{unanswered}" if unanswered else key, **options)
    except Pause:
        say_that_it_waits()
        raise


def _answers(key: str) -> list[bool]:
    """For each suspension of this run with a key that starts so: whether an answer resumed the run."""
    with get_client(sync_client=True) as client:
        states = client.read_flow_run_states(UUID(flow_run.id))
    states.sort(key=lambda state: state.timestamp)
    return [
        following.name == "Resuming"
        for state, following in pairwise(states)
        if state.is_paused() and (state.state_details.pause_key or "").startswith(key)
    ]


@step("record the decision")
def record_decision(job: ReleaseJob, review: Review) -> Decision:
    """Record an officer's decision in the ledger; it cannot be changed later."""
    approved = review.decision == "approve"
    return Ledger(ledger_url()).decide(
        job.dataset, job.release_id, approved, who=review.name, why=review.reason
    )
