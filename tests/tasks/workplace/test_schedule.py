"""Due times are those of Prefect's scheduler, and a release id can be derived from each."""

from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest

from dpcore.errors import InputError, PlanError
from schemas.operation import Schedule
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
