"""Computes the due times of a plan's schedule, and the release id of each.

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
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from dpcore.errors import InputError, PlanError
from schemas.plan.operation import Schedule
from tasks.workplace.plans import plan_name

STAMP = "%Y%m%d-%H%M%S"


def due_times(
    schedule: Schedule, start: datetime, end: datetime | None = None
) -> Iterator[datetime]:
    """The due times from ``start`` to ``end``, both included, in UTC and in order, each once.

    They are the times at which Prefect runs it: see ``_instant``.  Raises ``PlanError`` if it is never
    due.
    """
    croniter: Any = import_module("prefect._vendor.croniter").croniter  # the package has no types
    zone, day = ZoneInfo(schedule.timezone), timedelta(days=1)
    start, known = start.astimezone(UTC), False
    held: set[datetime] = set()
    try:
        (minutes, hours, *_), _ = croniter.expand(schedule.cron)
        times = [
            timedelta(hours=hour, minutes=minute)
            for hour in (range(24) if hours == ["*"] else hours)
            for minute in (range(60) if minutes == ["*"] else minutes)
        ]
        days = " ".join(["0 0", *schedule.cron.split()[2:]])
        # Two days earlier, because Prefect moves a time by up to a day, and a zone shifts it by hours.
        before = start.astimezone(zone).replace(tzinfo=None, fold=0) - 2 * day
        # By days of the wall clock: a search from one due time to the next would not end where Prefect
        # moves a time back out of a skipped hour.
        for midnight in croniter(days, before).all_next(datetime):
            known = True
            held |= {_instant(zone, midnight + time) for time in times}
            # A zone is less than a day ahead of UTC: nothing from the next midnight on is due before.
            settled = midnight.replace(tzinfo=UTC)
            passed = sorted(due for due in held if due < settled)
            held.difference_update(passed)
            yield from (due for due in passed if start <= due and (end is None or due <= end))
            if end is not None and settled > end:
                return
    except (ValueError, OverflowError):
        if not known:
            raise PlanError(
                f"operation.schedule.cron: {schedule.cron!r} never comes due; correct the cron"
                " expression"
            ) from None
    yield from sorted(due for due in held if start <= due and (end is None or due <= end))


def _instant(zone: ZoneInfo, wall: datetime) -> datetime:
    """The instant at which Prefect runs a schedule that is due at this local time.

    In an hour that occurs twice it is the first occurrence.  A time in a skipped hour is moved by the
    skipped length: to before the hour, or on Python 3.13 and later to after it.
    """
    first, later = (_offset(zone, wall, fold) for fold in (0, 1))
    skipped = later > first
    return wall.replace(tzinfo=UTC) - (later if skipped and not _moves_on() else first)


def _offset(zone: ZoneInfo, wall: datetime, fold: int) -> timedelta:
    return wall.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta()


@cache
def _moves_on() -> bool:
    """Whether Prefect moves a time in a skipped hour forward; tested with a known time."""
    from prefect.server.schemas.schedules import CronSchedule

    skipped = CronSchedule(cron="15 1 29 3 *", timezone="Europe/Lisbon")
    (due,) = skipped._get_dates_generator(n=1, start=datetime(2026, 3, 28, tzinfo=UTC))
    return due.timestamp() > datetime(2026, 3, 29, 1, tzinfo=UTC).timestamp()


def run_id(plan: Path, due: datetime, kind: str = "", own: str = "") -> str:
    """The release id of a run of this plan; ``kind`` and ``own`` distinguish unscheduled runs."""
    return "-".join(filter(None, (plan_name(plan), kind, f"{due.astimezone(UTC):{STAMP}}", own)))


def beginning(schedule: Schedule, plan: Path | None, releases: Collection[str]) -> datetime | None:
    """The time when the schedule began: its ``since``, else the plan's first scheduled release."""
    if schedule.since is not None:
        zone = ZoneInfo(schedule.timezone)
        return _instant(zone, datetime.combine(schedule.since, time())).astimezone(zone)
    dues = (due_of(plan, release) for release in releases if plan)
    return min(
        (due for due in dues if due and next(due_times(schedule, due), None) == due), default=None
    )


def due_of(plan: Path, release_id: str) -> datetime | None:
    """The due time in the id of a scheduled run of this plan; None for any other id."""
    due = due_in(release_id)
    return due if due and release_id == run_id(plan, due) else None


def due_in(release_id: str) -> datetime | None:
    """The due time at the end of the id of a scheduled run of any plan; None for other ids."""
    stamp = re.search(r"-(\d{8}-\d{6})$", release_id)
    try:
        return datetime.strptime(stamp[1], STAMP).replace(tzinfo=UTC) if stamp else None
    except ValueError:
        return None


def read_due(schedule: Schedule, text: str, now: datetime) -> datetime:
    """A due time that has passed, as a person writes it; without an offset it is local time."""
    try:
        wanted = datetime.fromisoformat(text)
        if not 2000 <= wanted.year < 9999:
            raise ValueError
    except ValueError:
        raise InputError(f"--due {text}: write a time such as 2026-12-01T06:00") from None
    if wanted.tzinfo is None:
        wanted = _instant(ZoneInfo(schedule.timezone), wanted)
    wanted = wanted.astimezone(UTC)  # two times in an hour that occurs twice never equal each other
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
