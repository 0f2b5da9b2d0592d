"""Compares plans with the ledger: which run of its series a plan is, and whether it states the grant."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from dpcore.errors import BudgetError, InputError, LedgerError
from schemas.plan import Plan
from tasks.ledger.ledger import Ledger
from tasks.ledger.records import Account, State, exact_text
from tasks.workplace.job import ReleaseJob
from tasks.workplace.schedule import beginning, due_times


def runs_charged(plan: Plan, ledger: Ledger | None) -> dict[str, int]:
    """The release ids of the plan's series, except void ones, each with the number of its run."""
    made = ledger.releases(plan.dataset) if ledger else {}
    return {
        charge.release_id: charge.run
        for charges in made.values()
        for charge in charges.values()
        if charge.series == plan.series_id and charge.state is not State.VOID
    }


def at_its_run(
    plan: Plan, ledger: Ledger | None, release_id: str = "", due: datetime | None = None
) -> Plan:
    """The plan at the run of its series to which a release belongs.

    The number of the run is the one charged for the release, or stated by the plan. Otherwise it is the
    number of the ``due`` time on a schedule, or the first run without a release in the ledger.  Raises
    ``InputError`` if a scheduled series is run without a due time, or if the series has no such run.
    """
    if plan.series is None or "run" in plan.series.model_fields_set:
        return plan
    charged = runs_charged(plan, ledger)
    # The number that was charged comes first: a retry must be the same run, whatever ran meanwhile.
    schedule, run = plan.operation.schedule, charged.get(release_id)
    if run is None and schedule and due:
        begins = beginning(schedule, None, ())
        run = len(list(due_times(schedule, begins, due))) if begins and begins <= due else 0
        if run == 0:
            raise InputError(
                "operation.schedule.since: this release was due before the series began"
            )
    elif run is None and schedule and release_id:
        raise InputError(
            "series.run: the periods of this series follow its schedule; name the period by its due"
            " time (--due), or by its number (--set series.run=NUMBER)"
        )
    if run is None:
        run = 1 + max(charged.values(), default=0)
    return plan.changed(series=plan.series.at(run))


def as_found(job: ReleaseJob, ledger: Ledger) -> ReleaseJob:
    """The job, whose plan has the categories that the release found for its open columns.

    Raises ``LedgerError`` if they are not drawn yet.
    """
    plan = job.plan
    if not plan.finding:
        return job
    draws = {name: ledger.committed(job.dataset, job.release_id, name) for name in plan.finding}
    if missing := [name for name, noisy in draws.items() if noisy is None]:
        raise LedgerError(f"{missing[0]}: is not drawn yet; run the plan first")
    found = {name: noisy for name, noisy in draws.items() if noisy}
    return replace(job, plan=plan.as_found(found))


def no_grant(plan: Plan) -> str:
    """A message that a dataset has no grant, with the command that grants the amounts in the plan."""
    granted = plan.budget.granted
    amounts = [
        f" --{name} {exact_text(amount)}"
        for name in ("alpha", "beta", "gamma")
        if (amount := getattr(granted, name))
    ]
    composition = plan.budget.composition
    rule = "" if composition == "basic" else f" --composition {composition}"
    return (
        f"dataset {plan.dataset!r} has no grant in this ledger, which a server or several machines use:"
        f" whoever grants budgets runs `dprelease ledger grant {plan.dataset}{''.join(amounts)}{rule}"
        " --who WHO --why WHY`"
    )


def require_grant(plan: Plan, account: Account) -> None:
    """Raise ``BudgetError`` unless the plan states the grant that the ledger records."""
    composition, granted = plan.budget.composition, plan.budget.granted.budget
    if account.composition != composition:
        raise BudgetError(
            f"budget.composition: the plan says {composition}, but the ledger records a"
            f" {account.composition} grant of {plan.dataset}: write `composition: {account.composition}`"
            " under `budget` of the plan"
        )
    says = (
        f"budget.granted: the plan says that {plan.dataset} was granted {granted}, but the ledger"
        f" records {account.promise}; correct the plan"
    )
    if composition == "concentrated" and account.promise != granted:
        raise BudgetError(says)  # a concentrated grant never grows, and the plan publishes it
    if not account.caps.covers(plan.budget.caps):
        raise BudgetError(f"{says}, or grant the difference with `dprelease ledger grant`")
