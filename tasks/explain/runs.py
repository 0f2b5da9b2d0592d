"""Computes how many more runs of a plan the budget covers, and when a schedule exhausts the budget."""

from __future__ import annotations

from datetime import datetime
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from dpcore.accounting.budget import Budget, total
from schemas.plan import Plan

if TYPE_CHECKING:
    from tasks.ledger import Ledger

FAR = 1000
"""The date on which a schedule exhausts the budget is computed only up to this many runs ahead."""


def remaining(plan: Plan, ledger: Ledger | None) -> Budget:
    """The budget left of the dataset's grant, or the plan's grant for a new dataset."""
    if ledger is None or ledger.granted(plan.dataset) is None:
        return plan.budget.caps
    return ledger.remaining(plan.dataset)


def runs_left(plan: Plan, left: Budget, ledger: Ledger | None = None) -> int:
    """How many more runs of the plan the budget covers.

    For a series, count from the run after the last one charged in the ``ledger``; without a ledger,
    from the plan's run.
    """
    if plan.series is None:
        runs = left.times(plan.requested)
        assert runs is not None  # a plan asks for a positive amount
        return runs
    spent = accumulate(price_of_run(plan, run) for run in to_come(plan, ledger))
    return sum(1 for price in spent if left.covers(price))


def to_come(plan: Plan, ledger: Ledger | None = None) -> range:
    """The numbers of the future runs of the plan's series."""
    from tasks.ledger.runs_and_grant import runs_charged

    assert plan.series is not None
    done = max(runs_charged(plan, ledger).values(), default=0) if ledger else plan.series.run - 1
    return range(done + 1, plan.series.periods + 1)


def price_of_run(plan: Plan, run: int) -> Budget:
    """The price of one run of the plan's series."""
    assert plan.series is not None
    series = plan.series.at(run)
    return total(series.price(release) for release in plan.built.values())


def series_text(plan: Plan) -> list[str]:
    """A line on the cost of all future runs of the plan's series together; empty without a series."""
    if plan.series is None:
        return []
    costs = total(price_of_run(plan, run) for run in to_come(plan))
    return [
        f"Run {plan.series.run} of {plan.series.periods} of a series. This and all later runs together"
        f" cost {costs}. A plan with other columns, releases or periods begins a new series."
    ]


def runs_text(plan: Plan, left: Budget, now: datetime, ledger: Ledger | None = None) -> str:
    """The number of runs in words, and the date of the last one if the plan has a schedule."""
    runs, schedule = runs_left(plan, left, ledger), plan.operation.schedule
    words = f"{runs or 'no'} more run{'s' * (runs != 1)} of this plan"
    if schedule is None or runs == 0:
        return words
    from tasks.workplace.schedule import due_times, local_text

    last = list(islice(due_times(schedule, now), min(runs, FAR)))[-1]
    when = f"{'after' if runs > FAR else 'on'} {local_text(schedule, last)} ({schedule.timezone})"
    return f"{words}: the schedule exhausts the budget {when}"


def last_release_text(ledger: Ledger, dataset: str) -> str:
    """Text on how many more releases at the last price the account covers; empty without a release."""
    account = ledger.account(dataset)
    known = [
        charges
        for charges in ledger.releases(dataset).values()
        if account and any(charge.account == account.number for charge in charges.values())
    ]
    last = max(known, key=lambda charges: max(c.reserved_at for c in charges.values()), default={})
    runs = ledger.remaining(dataset).times(total(charge.budget for charge in last.values()))
    if runs is None:
        return ""
    (release_id,) = {charge.release_id for charge in last.values()}
    return f"{runs or 'no'} more release{'s' * (runs != 1)} at the price of the last, {release_id}"
