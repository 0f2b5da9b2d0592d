"""Whole years of due times in any zone, against a computation of their own."""

import random
import time
import zoneinfo
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dpcore.errors import PlanError
from schemas.plan.operation import Schedule
from tasks.workplace.schedule import due_times

pytestmark = pytest.mark.slow

CASES, SECONDS = 250, 0.5
"""Schedules, and the processor time in which the due times of a year are found."""

Field = tuple[str, set[int]]


def field(chance: random.Random, low: int, high: int, every: float) -> Field:
    """A field of a cron expression, and the values that it means."""
    if chance.random() < every:
        return "*", set(range(low, max(high, 31) + 1))
    form, first = chance.random(), chance.randint(low, high)
    if form < 0.5:
        return str(first), {first}
    if form < 0.7 and first < high:
        last = chance.randint(first + 1, high)
        return f"{first}-{last}", set(range(first, last + 1))
    if form < 0.85 or high == 28:  # of later days Prefect leaves some out
        other = chance.randint(low, high)
        return f"{first},{other}", {first, other}
    step = chance.randint(max(2, (high - low) // 4), high - low)
    return f"*/{step}", set(range(low, high + 1, step))


def choice_of_minutes(chance: random.Random) -> Field:
    """One or two: of more, a year has too many times to be computed in another way."""
    minutes = sorted(chance.sample(range(60), chance.choice((1, 2))))
    return ",".join(map(str, minutes)), set(minutes)


def expected(fields: list[Field], zone: ZoneInfo, year: int) -> set[datetime]:
    """The due times of a year by its definition: day by day, and minute by minute of the wall."""
    (_, minutes), (_, hours), *on = fields
    hours = hours & set(range(24))
    found = set()
    for day in days(on, year):
        offsets = offsets_near(day, zone)
        walls = [
            datetime(*day.timetuple()[:3], hour, minute) for hour in hours for minute in minutes
        ]
        found.update(instant(wall, zone, offsets) for wall in walls)
    return found


def days(on: list[Field], year: int) -> Iterator[date]:
    """Those of the year and its neighbours; a day of the month or one of the week is enough."""
    (of_month, in_month), (_, months), (of_week, in_week) = on
    day = date(year - 1, 12, 25)
    while day < date(year + 1, 1, 8):
        first, second = day.day in in_month, day.isoweekday() % 7 in {d % 7 for d in in_week}
        either = "*" not in (of_month, of_week)
        if day.month in months and (first or second if either else first and second):
            yield day
        day += timedelta(days=1)


def offsets_near(day: date, zone: ZoneInfo) -> set[timedelta]:
    """From UTC, on the day and a day and a half before and after it."""
    begins = datetime(*day.timetuple()[:3], tzinfo=UTC)
    moments = [begins + timedelta(hours=hours) for hours in range(-36, 61, 6)]
    offsets = {moment.astimezone(zone).utcoffset() for moment in moments}
    return {offset for offset in offsets if offset is not None}


def instant(wall: datetime, zone: ZoneInfo, offsets: set[timedelta]) -> datetime:
    """The first moment at which clocks show this time; of one that they skip, by the later offset."""
    moments = [wall.replace(tzinfo=UTC) - offset for offset in offsets]
    if len(moments) == 1:
        return moments[0]
    shown = [m for m in moments if m.astimezone(zone).replace(tzinfo=None) == wall]
    if shown:
        return min(shown)
    before, after = (
        max(m for m in moments if m.astimezone(zone).replace(tzinfo=None) < wall),
        min(m for m in moments if m.astimezone(zone).replace(tzinfo=None) > wall),
    )
    return min(before, after)


def test_the_due_times_of_a_year_are_those_that_exist():
    chance = random.Random(20261125)
    zones = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
    for _ in range(CASES):
        name, year = chance.choice(zones), chance.randint(1975, 2060)
        fields = [
            choice_of_minutes(chance),
            field(chance, 0, 23, 0.02),
            field(chance, 1, 28, 0.5),
            field(chance, 1, 12, 0.5),
            field(chance, 0, 6, 0.5),
        ]
        cron, zone = " ".join(text for text, _ in fields), ZoneInfo(name)
        start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        due = sorted(d for d in expected(fields, zone, year) if start <= d <= end)
        schedule, took = Schedule(cron=cron, timezone=name), []
        # The least of three times counts: the first may import Prefect, or share a busy processor.
        while len(took) < 3 and min(took, default=SECONDS) >= SECONDS:
            began, found = time.process_time(), []
            with suppress(PlanError):  # never due: a day such as the 31st of February
                found = list(due_times(schedule, start, end))
            took.append(time.process_time() - began)
            assert found == due, (cron, name, year)
        assert min(took) < SECONDS, (cron, name, year, took)
