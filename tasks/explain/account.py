"""Describes a dataset's account, history and faults in the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcore.accounting.budget import Budget, decimal_text, total
from dpcore.errors import BudgetError
from schemas.plan import Plan
from tasks.explain.explain import budget_rows, describe_dataset, explanation, promises
from tasks.explain.runs import last_release_text, runs_text
from tasks.explain.tables import COORDINATES, amounts, text_table
from tasks.explain.verdicts import verdict_text
from tasks.workplace.home import ledger_exists, ledger_url

if TYPE_CHECKING:
    from tasks.ledger import Fault, HistoryRecord, Ledger


def in_the_ledger(plan: Plan) -> tuple[Plan, Budget | None, Budget, str]:
    """The plan at its next run, its dataset's grant and spending, and the reason for a refusal, or "".

    These are the arguments of ``explain``.  Without a ledger nothing was granted, spent or refused.
    """
    if not ledger_exists():
        return plan, None, Budget(), ""
    from tasks.ledger import Ledger  # slow to import
    from tasks.ledger.runs_and_grant import at_its_run

    # A lost ledger is not made again, because a new file would be in the way of a backup.
    ledger = Ledger(ledger_url(), create=False)
    plan = at_its_run(plan, ledger)
    dataset = plan.dataset
    return plan, ledger.granted(dataset), ledger.spent(dataset), explain_refusal(plan, ledger)


def explain_refusal(plan: Plan, ledger: Ledger) -> str:
    """The reason why the ledger would refuse a release although the budget covers it; else empty."""
    from tasks.ledger import charges_of
    from tasks.ledger.runs_and_grant import no_grant, require_grant

    account = ledger.account(plan.dataset)
    try:
        if account is not None:
            require_grant(plan, account)
        elif ledger.shared:
            raise BudgetError(no_grant(plan))
        ledger.check_addable(plan.dataset, plan.digest, charges_of(plan))
    except BudgetError as refused:
        return f"The release would be refused: {refused}."
    return ""


def question_text(plan: Plan, ledger: Ledger) -> str:
    """Text on the cost and accuracy of an answer to an analyst, and the budget left afterwards."""
    granted, spent = ledger.granted(plan.dataset), ledger.spent(plan.dataset)
    budget, _ = budget_rows(plan, granted, spent)
    return "\n".join(
        [
            f"{plan.publication.title}, asked by {plan.publication.requester}",
            describe_dataset(plan),
            "",
            *verdict_text(plan),
            "",
            text_table([*budget, *allowance_rows(plan, ledger)]),
            *promises(plan),
        ]
    )


def question_facts(plan: Plan, ledger: Ledger) -> dict[str, Any]:
    """The content of ``question_text`` as JSON values."""
    facts = explanation(plan, ledger.granted(plan.dataset), ledger.spent(plan.dataset))
    left = {row.pop(""): row for row in allowance_rows(plan, ledger)}
    return {"title": plan.publication.title} | facts | {"allowance": left}


def allowance_rows(plan: Plan, ledger: Ledger) -> list[dict[str, str]]:
    """Rows on the requester's allowance, before and after the plan; empty without an allowance."""
    found = ledger.allowances(plan.dataset).get(plan.publication.requester)
    if found is None:
        return []
    cost, names = total(plan.prices.values()), plan.requested.coordinates
    rows = [amounts(f"allowed to {plan.publication.requester}", found.allowed, names)]
    rows.append(amounts("allowance spent", found.spent, names))
    if found.left.covers(cost):
        rows.append(amounts("allowance left afterwards", found.left - cost, names))
    return rows


def ledger_rows(ledger: Ledger, dataset: str) -> list[dict[str, str]]:
    """A dataset's budget in three rows: granted, spent, left."""
    granted = ledger.granted(dataset) or Budget()
    return [
        amounts("granted", granted, granted.coordinates),
        amounts("spent", ledger.spent(dataset), granted.coordinates),
        amounts("left", ledger.remaining(dataset), granted.coordinates),
    ]


def ledger_text(ledger: Ledger, dataset: str, plans: Mapping[Path, Plan]) -> str:
    """A dataset's grants, spending, number of affordable runs and history as text.

    Without a plan of the dataset, a run is assumed to cost as much as the last release.
    """
    left, now = ledger.remaining(dataset), datetime.now(UTC)
    runs = [
        f"{path.name}: the grant covers {runs_text(plan, left, now, ledger)}."
        for path, plan in plans.items()
        if plan.dataset == dataset
    ]
    if not runs and (words := last_release_text(ledger, dataset)):
        runs = [f"The grant covers {words}."]
    records = ledger.history(dataset)
    in_rho = any(record.caps.rho for record in records if record.caps)
    names = ("alpha", "rho", "beta", "gamma") if in_rho else COORDINATES
    history = [
        {
            "when": record.at[:19],
            "what": str(record.action),
            "release": " ".join(filter(None, (record.release_id, record.release_name))),
            **{c: decimal_text(getattr(_recorded(record), c)) for c in names},
            "who": record.who or "",
            "why": record.why or "",
        }
        for record in records
    ]
    account = ledger.account(dataset)
    if account is not None and ledger.promised(dataset) != account.promise:
        runs.append(
            f"This is the newest grant, of {account.promise}. Under all grants, all releases together"
            f" guarantee {ledger.promised(dataset)}."
        )
    names_of_grant = (ledger.granted(dataset) or Budget()).coordinates
    allowed = [
        amounts(f"{analyst}: {what}", each, names_of_grant)
        for analyst, allowance in ledger.allowances(dataset).items()
        for what, each in (("allowed", allowance.allowed), ("left", allowance.left))
    ]
    budget = [dataset, text_table([*ledger_rows(ledger, dataset), *allowed]), *runs]
    return "\n".join([*budget, "", text_table(history)])


def _recorded(record: HistoryRecord) -> Budget:
    """The amounts in a line of history; for a concentrated grant, its promise and its cap on rho."""
    return replace(record.budget, rho=record.caps.rho) if record.caps else record.budget


def fault_rows(faults: Sequence[Fault]) -> list[dict[str, str]]:
    """One numbered row per fault; the remedies are printed below the table."""
    return [
        {
            "": str(number),
            "dataset": fault.dataset,
            "release": " ".join(filter(None, (fault.release_id, fault.release_name))),
            "fault": fault.what,
        }
        for number, fault in enumerate(faults, 1)
    ]
