"""Due times are those of Prefect's scheduler, and a release id can be derived from each."""

import random
import time
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from prefect.server.schemas.schedules import CronSchedule
from pydantic import ValidationError

from dpcore.errors import InputError, PlanError
from schemas.plan.operation import Schedule
from tasks.workplace.schedule import beginning, due_times, local_text, read_due, run_id

LISBON = Schedule(cron="0 6 1 * *", timezone="Europe/Lisbon")
NOW = datetime(2026, 12, 15, tzinfo=UTC)
PLAN = Path("plans/Income.yaml")


def test_a_month_is_due_at_six_on_the_wall_in_winter_and_in_summer():
    year = list(due_times(LISBON, NOW, NOW + timedelta(days=365)))
    assert len(year) == 12
    assert {local_text(LISBON, due)[8:] for due in year} == {"01T06:00"}
    assert {due.hour for due in year} == {5, 6}


def test_more_due_times_than_prefect_gives_at_once_follow_without_a_gap():
    hourly = list(islice(due_times(Schedule(cron="0 * * * *"), NOW), 2500))
    assert {later - due for due, later in zip(hourly, hourly[1:], strict=False)} == {
        timedelta(hours=1)
    }
    end = hourly[1500]
    assert list(due_times(Schedule(cron="0 * * * *"), NOW, end)) == hourly[:1501]


def test_a_schedule_that_never_comes_due_is_refused():
    with pytest.raises(PlanError, match="never comes due"):
        next(due_times(Schedule(cron="0 0 31 2 *"), NOW))


def test_a_person_names_a_due_time_on_the_wall_or_with_an_offset():
    for text in (
        "2026-12-01T06:00",
        "2026-12-01 06:00",
        "2026-12-01T06:00Z",
        "2026-12-01T07:00+01",
    ):
        due = read_due(LISBON, text, NOW)
        assert run_id(PLAN, due) == "income-20261201-060000"
    summer = read_due(LISBON, "2026-08-01T06:00", NOW)
    assert run_id(PLAN, summer) == "income-20260801-050000"
    assert read_due(LISBON, local_text(LISBON, summer), NOW) == summer


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-12-01", "next at 2026-12-01T06:00"),
        ("2026-12-01T06:00:01", "next at 2027-01-01T06:00"),
        ("2027-01-01T06:00", "has not come yet"),
        ("December", "write a time"),
        ("0001-01-01", "write a time"),
    ],
)
def test_a_time_that_is_not_a_past_due_time_is_refused(text, says):
    with pytest.raises(InputError, match=says):
        read_due(LISBON, text, NOW)


def test_a_schedule_begins_with_its_first_release_unless_it_says_since_when():
    made = ["r1", "income-20261101-060000", "income-20261001-050000", "other-20250101-060000",
            "income-20250615-000000",  # chosen by hand: nothing was due then
            "income-20240101-060000-ab12", "income-20241399-060000",
            "income-ad-hoc-20240101-060000-ab12"]  # fmt: skip
    assert beginning(LISBON, PLAN, made) == datetime(2026, 10, 1, 5, tzinfo=UTC)
    assert beginning(LISBON, PLAN, ["r1"]) is None
    since = LISBON.model_copy(update={"since": date(2026, 7, 1)})
    assert beginning(since, PLAN, made) == datetime(2026, 6, 30, 23, tzinfo=UTC)


CRONS = (
    "0 0 * * *", "15 1 29 3 *", "*/30 * * * *", "30 2 * * 0", "0 0 29 2 *", "*/7 */5 * * *",
    "0 6 13 * 5", "0 6 l * *", "0 0,12 * * fri#2", "45 23 * mar,oct L6", "17 0-3 1-7 * sun",
)  # fmt: skip


def moved(cron: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """What Prefect's scheduler gives, asked anew for each week, as it asks itself again and again."""
    prefect, found = CronSchedule(cron=cron, timezone=zone), set()
    for week in range((end - start).days // 7 + 3):
        begin = start + timedelta(days=7 * week - 7)
        dues = prefect._get_dates_generator(n=1000, start=begin, end=begin + timedelta(days=9))
        found |= {datetime.fromtimestamp(due.timestamp(), UTC) for due in dues}
    return sorted(due for due in found if start <= due <= end)


ASKED = [
    *random.Random(6).choices(sorted(available_timezones() - {"localtime", "Factory"}), k=36),
    "America/Santiago", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
]  # fmt: skip


@pytest.mark.slow
def test_due_times_are_those_of_prefects_scheduler_in_every_zone():
    """Two months around the days on which clocks change, those of Apia's skipped day among them."""
    chance = random.Random(7)
    for zone in ASKED:
        year = 2011 if zone == "Pacific/Apia" else chance.randrange(2000, 2037)
        starts = [datetime(year, 12, 20, 7, 3, 1, tzinfo=UTC)] if year == 2011 else []
        offset = datetime(year, 1, 1, tzinfo=UTC).astimezone(ZoneInfo(zone)).utcoffset()
        for day in range(365):
            start = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day)
            before, offset = offset, start.astimezone(ZoneInfo(zone)).utcoffset()
            if before != offset:
                starts.append(start - timedelta(days=chance.randrange(1, 9)))
        for start in starts:
            cron, end = chance.choice(CRONS), start + timedelta(days=20)
            due = list(due_times(Schedule(cron=cron, timezone=zone), start, end))
            assert due == moved(cron, zone, start, end), (cron, zone, start)


@pytest.mark.slow
@pytest.mark.parametrize("cron", ["0 0 29 2 *", "*/7 * * * *"])
def test_years_of_due_times_end_and_go_forward(cron):
    years = 100 if " 29 " in cron else 1
    begun = time.process_time()
    start = datetime(2026, 3, 29, 0, 15, 1, tzinfo=UTC)
    end = start.replace(year=start.year + years)
    due = list(due_times(Schedule(cron=cron, timezone="Europe/Lisbon"), start, end))
    assert due == sorted(set(due))
    assert start <= due[0]
    assert due[-1] <= end
    assert time.process_time() - begun < 20


def test_a_time_in_an_hour_that_is_skipped_or_occurs_twice_can_be_named():
    for cron, text in (("15 1 29 3 *", "2026-03-29T01:15"), ("30 1 25 10 *", "2026-10-25T01:30")):
        schedule = Schedule(cron=cron, timezone="Europe/Lisbon", since=date(2026, 1, 1))
        (due,) = due_times(schedule, beginning(schedule, None, ()), NOW)
        assert read_due(schedule, text, NOW) == due
        assert read_due(schedule, local_text(schedule, due), NOW) == due


def test_times_by_chance_are_refused():
    with pytest.raises(ValidationError, match="random times"):
        Schedule(cron="R 6 * * *")
