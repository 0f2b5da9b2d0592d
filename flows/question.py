"""Turns a question about a plan that is open to requests into a new plan.

The form (``flows.ad_hoc``) and ``dprelease ask`` work in the same way: the agency's plan limits the
questions, the planner finds releases that answer the wishes, and the ledger adds up the cost.

If a question was asked before, the answer is the earlier bundle, which is public, and nothing is
charged. Two questions are the same if their plans differ only in title and requester, and the data are
the same. The data count as changed since the first question if

    the ledger does not know the plan's source, or has recorded a source of the dataset since (at a run,
        or by ``dprelease ledger source`` when another survey replaces it)
    the plan's schedule was due since, so the table contains another period
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from dpcore.errors import InputError
from flows.operation.identity import WORDS
from schemas.first_plan.opened import planned
from schemas.first_plan.wishes import Said
from schemas.plan import Plan, load_plan
from schemas.plan.selection import asked_for, select
from tasks.explain.analysis import model_error
from tasks.ledger import Action, ChargeRecord, Ledger, State
from tasks.survey.steps import name_survey
from tasks.workplace.plans import known_plan
from tasks.workplace.schedule import beginning, due_times

NOTHING = Said()


def select_releases(
    plan: str,
    releases: Sequence[str],
    alpha: str,
    title: str,
    requester: str,
    said: Said = NOTHING,
) -> tuple[Plan, Fraction]:
    """The plan that answers the request, and the ``open_fraction`` of its ``ReleaseJob``.

    Without a title, the text of the wishes becomes the title.  Raises ``InputError`` for an impossible
    choice, or one that the plan does not open.
    """
    agency = load_plan(known_plan(plan))
    requests = agency.operation.requests
    if requests is None:
        raise InputError(
            f"plan: {plan!r} opens nothing to requests; its author may state operation.requests"
        )
    if not isinstance(requester, str) or not requester.strip():
        raise InputError("requester: write who asks for the release")
    title, requester, asked = title.strip(), requester.strip(), asked_for(agency, alpha)
    if said != NOTHING:
        if releases:
            raise InputError(
                "releases: leave them out, because there are wishes; ask for them in another run"
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


ASK = "ask"
"""The text that ``dprelease ask`` puts into the ids of its releases."""


@dataclass(frozen=True)
class EarlierAnswer:
    """An earlier release that answers the same question.

    ``plan`` has the earlier title and requester; ``at`` is the time when it was drawn, or reserved if it
    is not drawn yet; ``answered`` is whether its bundle was made.
    """

    plan: Plan
    release_id: str
    at: str
    answered: bool

    def __str__(self) -> str:
        if self.answered:
            return (
                f"this was answered on {self.at[:10]}; nothing is charged; ask with another alpha for a"
                " new draw"
            )
        return f"this was asked on {self.at[:10]} and is not published; nothing more is charged"


def asked_before(plan: Plan, name: str, ledger: Ledger) -> EarlierAnswer | None:
    """The newest release that answers the same question about the agency's plan ``name``, if any.

    A release of earlier data also counts until it is published or rejected, so that nobody loses its
    answer.
    """
    made = _asked(plan.dataset, name, ledger)
    known = {r.release_id: r for r in ledger.history(plan.dataset) if r.action is Action.REQUEST}
    for release_id, charges in sorted(made.items(), key=lambda item: _at(item[1]), reverse=True):
        words = {}
        if asked := known.get(release_id):  # a run that failed early has not recorded it
            words = {"title": asked.why, "requester": asked.who}
        same = plan.changed(publication=plan.publication.model_copy(update=words))
        if {(charge.release_name, charge.plan_digest) for charge in charges} != {
            (release, same.digest) for release in plan.built
        }:
            continue
        decision = ledger.decision(plan.dataset, release_id)
        answered = bool(ledger.seals(plan.dataset, release_id))
        settled = answered or (decision is not None and not decision.approved)
        if not (settled and _data_changed(plan, _at(charges), ledger)):
            return EarlierAnswer(same, release_id, _at(charges), answered)
    return None


def question_id(plan: Plan, name: str, ledger: Ledger) -> str:
    """The release id for a question that was not asked before about this data."""
    # Made from the question alone: if two people ask it at the same moment, only one is charged.
    first = f"{name}-{ASK}-{plan.digest[:16]}"
    taken = sum(release_id.startswith(first) for release_id in ledger.releases(plan.dataset))
    return f"{first}-{taken + 1}" if taken else first


def _asked(dataset: str, name: str, ledger: Ledger) -> dict[str, list[ChargeRecord]]:
    """The charges of all questions about a plan, by release id; without voided ones."""
    starts = tuple(f"{name}-{word}-" for word in (ASK, WORDS["ad hoc release"]))
    return {
        release_id: [*charges.values()]
        for release_id, charges in ledger.releases(dataset).items()
        if release_id.startswith(starts)
        # With a voided charge the release can never be finished, so it is no answer.
        and all(charge.state is not State.VOID for charge in charges.values())
    }


def _at(charges: Sequence[ChargeRecord]) -> str:
    return max(charge.committed_at or charge.reserved_at for charge in charges)


def _data_changed(plan: Plan, since: str, ledger: Ledger) -> bool:
    """Whether public facts indicate that the survey has changed since this time."""
    own, known = name_survey(plan), ledger.sources()
    if not own or own[0] not in known or ledger.source_recorded(plan.dataset) > since:
        return True
    if (schedule := plan.operation.schedule) is None:
        return False
    begins = beginning(schedule, None, ())
    then = datetime.fromisoformat(since)
    return any(due_times(schedule, max(then, begins or then), datetime.now(UTC)))
