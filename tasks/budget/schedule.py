"""Compares a schedule with its dataset's budget, and with the releases in the ledger."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from dpcore.errors import BudgetError
from schemas.plan import Plan
from tasks.explain.runs import remaining, runs_left, runs_text
from tasks.ledger import Fault, Ledger, State
from tasks.workplace.schedule import beginning, due_times, local_text, run_id

DRAWN_WITHIN = timedelta(hours=6)
"""A reserved release that is not drawn within this time after it was due counts as late."""

MOST_LATE = 1000
"""At most this many late releases of a plan are listed; one a minute since 2000 makes 14 million."""


def require_first_year(plan: Plan, path: Path, ledger: Ledger | None, now: datetime) -> None:
    """Raise ``BudgetError`` if the budget ends within the schedule's first year; a plan may allow it.

    Only future runs of that year must fit, so a schedule can be deployed again.
    """
    schedule = plan.operation.schedule
    if schedule is None or plan.operation.allow_exhaustion:
        return
    made = ledger.releases(plan.dataset) if ledger else {}
    begins = beginning(schedule, path, made) or now
    ends, to_come = _end_of_year(begins), max(begins, now)
    left = remaining(plan, ledger)
    runs = runs_left(plan, left, ledger)
    # One due time more than the budget pays is enough to know; a year may have half a million.
    if len(list(islice(due_times(schedule, to_come, ends), runs + 1))) <= runs:
        return
    raise BudgetError(
        f"{path}: the schedule's first year, to {local_text(schedule, ends)[:10]}, does not fit the"
        f" remaining grant, which covers {runs_text(plan, left, to_come, ledger)}. Grant more with"
        " `dprelease ledger grant`, lower budget.requested, make operation.schedule rarer, or write"
        " operation.allow_exhaustion: true to deploy it all the same"
    )


def late_releases(plan: Plan, path: Path, ledger: Ledger, now: datetime) -> list[Fault]:
    """The due times of the plan's schedule that have passed without a release in the ledger.

    Only the oldest ``MOST_LATE`` are listed.  A release that was reserved and is not drawn after
    ``DRAWN_WITHIN`` is late too: its run was lost.
    """
    schedule = plan.operation.schedule
    made = ledger.releases(plan.dataset)
    begins = beginning(schedule, path, made) if schedule else None
    if schedule is None or begins is None:
        return []

    def is_made(release_id: str, due: datetime) -> bool:
        charges = made.get(release_id, {}).values()
        lost = due < now - DRAWN_WITHIN and any(c.state is State.RESERVED for c in charges)
        return release_id in made and not lost

    late = (
        Fault(
            plan.dataset,
            release_id,
            "",
            f"late: was due at {local_text(schedule, due)} ({schedule.timezone})",
            "if no run is working on it, make the release with the table of its period:"
            f" dprelease run {path} --due {local_text(schedule, due)}",
        )
        for due in due_times(schedule, begins, now)
        if not is_made(release_id := run_id(path, due), due)
    )
    return list(islice(late, MOST_LATE))


def _end_of_year(begins: datetime) -> datetime:
    leap_day = (begins.month, begins.day) == (2, 29)  # 29 February is missing in the next year
    return (begins - timedelta(days=leap_day, seconds=1)).replace(year=begins.year + 1)
