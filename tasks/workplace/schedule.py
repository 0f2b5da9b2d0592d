"""When a plan's schedule is due, and the release id of each due time.

A release id is made of the plan's name and the due time in UTC, where no hour occurs twice.  So a
scheduled run, a late run and a backfill of the same period are the same release.

>>> monthly = Schedule(cron="0 6 1 * *", timezone="Europe/Lisbon")
>>> due = next(due_times(monthly, datetime(2027, 3, 2, tzinfo=UTC)))
>>> local_text(monthly, due), run_id(Path("plans/income.yaml"), due)
('2027-04-01T06:00', 'income-20270401-050000')
"""

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from dpcore.errors import InputError, PlanError
from schemas.operation import Schedule
from tasks.workplace.plans import plan_name

STAMP = "%Y%m%d-%H%M%S"


def due_times(
    schedule: Schedule, start: datetime, end: datetime | None = None
) -> Iterator[datetime]:
    """The due times from ``start`` to ``end``, both included, in UTC.

    They are those of Prefect's own scheduler.  Raises ``PlanError`` if the schedule is never due.
    """
    from prefect.server.schemas.schedules import CronSchedule

    step = timedelta(seconds=1)
    try:
        cron = CronSchedule(cron=schedule.cron, timezone=schedule.timezone)
        while True:
            last = None
            # One call gives a thousand at most, and the public method is a coroutine.
            for due in cron._get_dates_generator(n=1000, start=start, end=end):
                last = datetime.fromtimestamp(due.timestamp(), UTC)  # not of Prefect's own class
                yield last
            if last is None:
                return
            start = last + step
    except ValueError:
        raise PlanError(
            f"operation.schedule.cron: {schedule.cron!r} never comes due; correct the cron expression"
        ) from None


def run_id(plan: Path, due: datetime, kind: str = "", own: str = "") -> str:
    """The release id of a run of this plan; ``kind`` and ``own`` distinguish unscheduled runs."""
    return "-".join(filter(None, (plan_name(plan), kind, f"{due.astimezone(UTC):{STAMP}}", own)))


def beginning(schedule: Schedule, plan: Path | None, releases: Collection[str]) -> datetime | None:
    """When the schedule began: as it says, or else with the plan's first scheduled release, if any."""
    if schedule.since is not None:
        return datetime.combine(schedule.since, time(), ZoneInfo(schedule.timezone))
    dues = (due_of(plan, release) for release in releases if plan)
    return min((due for due in dues if due and next(due_times(schedule, due)) == due), default=None)


def due_of(plan: Path, release_id: str) -> datetime | None:
    """The due time in the id of a scheduled run of this plan; None for any other id."""
    due = due_in(release_id)
    return due if due and release_id == run_id(plan, due) else None


def due_in(release_id: str) -> datetime | None:
    """The due time with which an id ends, as that of a scheduled run of whichever plan does."""
    stamp = re.search(r"-(\d{8}-\d{6})$", release_id)
    try:
        return datetime.strptime(stamp[1], STAMP).replace(tzinfo=UTC) if stamp else None
    except ValueError:
        return None


def read_due(schedule: Schedule, text: str, now: datetime) -> datetime:
    """A due time that has passed, as a person writes it; without an offset it is local time."""
    try:
        wanted = datetime.fromisoformat(text)
        if wanted.year < 2000:
            raise ValueError
    except ValueError:
        raise InputError(f"--due {text}: write a time such as 2026-12-01T06:00") from None
    if wanted.tzinfo is None:
        wanted = wanted.replace(tzinfo=ZoneInfo(schedule.timezone))
    if wanted > now:
        raise InputError(f"--due {text}: this time has not come yet")
    following = next(due_times(schedule, wanted))
    if following != wanted:
        raise InputError(
            f"--due {text}: the plan's schedule is not due then, but next at"
            f" {local_text(schedule, following)} ({schedule.timezone})"
        )
    return following


def local_text(schedule: Schedule, due: datetime) -> str:
    """A due time in the schedule's time zone, as ``read_due`` reads it."""
    return f"{due.astimezone(ZoneInfo(schedule.timezone)):%Y-%m-%dT%H:%M}"
