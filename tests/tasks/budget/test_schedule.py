"""A schedule that its budget does not cover is refused, and a due time without a release is noticed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from prefect.client.schemas.objects import FlowRun

import flows.release
from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError
from dpcore.line.statistic import Noisy
from flows.cli import main
from flows.operation.identity import release_id_of
from schemas.plan import Plan, load_plan
from tasks.budget.schedule import DRAWN_WITHIN, late_releases, require_first_year
from tasks.ledger import Charge, ChargeRequest, Ledger
from tests.bare import leave_out_audits, small_plan

MONTHLY = """
operation:
  schedule: {{cron: "0 6 1 * *", timezone: Europe/Lisbon{since}}}
  allow_exhaustion: {exhaustion}
"""
NOW = datetime(2026, 12, 15, tzinfo=UTC)
ROWS = {"neighbours": "replace-one"}


def monthly(folder: Path, granted: str = "12", since: str = "", exhaustion: str = "false") -> Path:
    """A plan that costs an alpha of 1 a month."""
    path = small_plan(folder)
    text = path.read_text().replace('granted: {alpha: "2"', f'granted: {{alpha: "{granted}"')
    text += MONTHLY.format(since=since and f", since: {since}", exhaustion=exhaustion)
    path.write_text(text)
    return path


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path}/ledger.sqlite")


def spend(ledger: Ledger, plan: Plan, *release_ids: str, alpha: str = "1") -> None:
    ledger.first_grant(plan.dataset, plan.budget.granted.budget, "the board", "test")
    for name in release_ids:
        charge = Charge(Budget.of(alpha), ROWS)
        ledger.reserve(ChargeRequest(plan.dataset, name, "a plan", {"people": charge}))
        ledger.commit(plan.dataset, name, "people", Noisy(np.array([1])))


@pytest.mark.parametrize(("granted", "fits"), [("12", True), ("11.999", False)])
def test_the_first_year_of_a_new_schedule_must_fit_the_grant_of_the_plan(tmp_path, granted, fits):
    path = monthly(tmp_path, granted)
    if fits:
        require_first_year(load_plan(path), path, None, NOW)
        return
    with pytest.raises(
        BudgetError, match=r"11 more runs .* exhausts the budget on 2027-11-01T06:00"
    ) as refused:
        require_first_year(load_plan(path), path, None, NOW)
    assert "allow_exhaustion: true" in str(refused.value)
    assert "dprelease ledger grant" in str(refused.value)
    path = monthly(tmp_path, granted, exhaustion="true")
    require_first_year(load_plan(path), path, None, NOW)


def test_only_the_runs_that_are_still_to_come_in_the_first_year_must_fit(tmp_path, ledger):
    path = monthly(tmp_path, "12")
    plan = load_plan(path)
    spend(ledger, plan, "plan-20261001-050000", "plan-20261101-060000", "plan-20261201-060000")
    require_first_year(plan, path, ledger, NOW)  # 9 of 12 are to come, and 9 are left
    spend(ledger, plan, "asked-for-by-somebody", alpha="1/1000")
    with pytest.raises(BudgetError, match="to 2027-10-01, does not fit"):
        require_first_year(plan, path, ledger, NOW)
    require_first_year(plan, path, ledger, NOW.replace(year=2027))  # no longer its first year


def test_a_due_time_without_a_release_is_late_until_it_has_one(tmp_path, ledger):
    path = monthly(tmp_path)
    plan = load_plan(path)
    assert late_releases(plan, path, ledger, NOW) == []  # never deployed, as far as anybody knows
    spend(ledger, plan, "plan-20260901-050000", "plan-20261101-060000")
    found = late_releases(plan, path, ledger, NOW)
    assert [fault.release_id for fault in found] == ["plan-20261001-050000", "plan-20261201-060000"]
    assert found[0].what == "late: was due at 2026-10-01T06:00 (Europe/Lisbon)"
    assert f"dprelease run {path} --due 2026-10-01T06:00" in found[0].remedy
    spend(ledger, plan, *(fault.release_id for fault in found))
    assert late_releases(plan, path, ledger, NOW) == []
    assert len(late_releases(plan, path, ledger, datetime(2027, 1, 1, 6, tzinfo=UTC))) == 1


def test_a_release_that_is_reserved_and_not_drawn_is_late_once_its_run_must_be_lost(
    tmp_path, ledger
):
    path = monthly(tmp_path, since="2026-12-01")
    plan = load_plan(path)
    due = datetime(2026, 12, 1, 6, tzinfo=UTC)
    ledger.first_grant(plan.dataset, plan.budget.granted.budget, "the board", "test")
    charges = {"people": Charge(Budget.of(1), ROWS)}
    ledger.reserve(ChargeRequest(plan.dataset, "plan-20261201-060000", "a plan", charges))
    assert late_releases(plan, path, ledger, due + DRAWN_WITHIN) == []
    (fault,) = late_releases(plan, path, ledger, due + DRAWN_WITHIN + timedelta(seconds=1))
    assert fault.release_id == "plan-20261201-060000"
    ledger.void(plan.dataset, fault.release_id, "people", "an officer", "given up")
    assert late_releases(plan, path, ledger, NOW) == []


@pytest.mark.slow
def test_after_a_week_without_a_server_each_day_can_be_made_wherever_the_clock_goes_meanwhile(
    tmp_path, ledger
):
    path = monthly(tmp_path, "30", since="2026-12-01")
    path.write_text(path.read_text().replace("0 6 1 * *", "0 6 * * *"))
    plan, hour = load_plan(path), timedelta(hours=1)
    days = [f"plan-202612{day:02}-060000" for day in range(1, 16)]
    spend(ledger, plan, *days[:7], days[14])

    def late(now: datetime) -> list[str]:
        return [fault.release_id for fault in late_releases(plan, path, ledger, now)]

    missed, now = days[7:14], datetime(2026, 12, 15, 7, tzinfo=UTC)
    for moved in (0 * hour, 5 * hour, -3 * hour, 22 * hour):
        assert late(now + moved) == missed
    # Ahead of its time a day seems late; once the clock is right, it is not.
    assert late(now + 24 * hour) == [*missed, "plan-20261216-060000"]
    assert late(now - 30 * hour) == missed[:-1]
    spend(ledger, plan, *missed[::2])
    assert late(now) == missed[1::2]
    spend(ledger, plan, *missed[1::2])
    assert late(now) == []
    assert ledger.spent(plan.dataset) == Budget.of(15)


@pytest.mark.slow
def test_a_backfill_is_the_release_of_the_scheduled_run_and_is_paid_once(
    tmp_path, monkeypatch, capsys
):
    leave_out_audits(monkeypatch.setattr)
    flow = flows.release.release
    monkeypatch.setattr(flows.release, "release", flow.fn)
    path = monthly(tmp_path, since="2026-11-01")
    monkeypatch.setattr("flows.cli.run.datetime", _Clock)
    monkeypatch.setattr("flows.cli.custody.datetime", _Clock)
    place = ("--ledger", f"sqlite:///{tmp_path}/ledger.sqlite")
    out = ("--out", str(tmp_path / "out"))
    due = ("run", str(path), "--due", "2026-11-01T06:00", *place, *out)
    assert main(due) == 0
    assert capsys.readouterr().out.endswith("out/survey/plan-20261101-060000\n")
    check = ("ledger", "check", *place, *out, "--plans", str(tmp_path))
    assert main(check) == 6
    found = capsys.readouterr().out
    assert "plan-20261201-060000" in found
    assert "plan-20261101-060000" not in found
    (command,) = [line for line in found.splitlines() if "dprelease run" in line]
    backfill = command.partition("dprelease ")[2].split()
    for _ in range(2):
        assert main((*backfill, *place, *out)) == 0
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.sqlite")
    assert ledger.spent("survey") == Budget.of(2)
    capsys.readouterr()
    assert main(check) == 0
    said = "ledger, draws and bundles agree; no scheduled release is late\n"
    assert capsys.readouterr().out == said
    due = datetime(2026, 12, 1, 6, tzinfo=UTC)
    late = FlowRun(flow_id=uuid4(), expected_start_time=due, auto_scheduled=True)
    flow.fn(str(path), release_id_of("release", late, "plan"), str(tmp_path / "out"))
    assert ledger.spent("survey") == Budget.of(2)


class _Clock(datetime):
    """The time of these tests."""

    @classmethod
    def now(cls, tz=None):
        return NOW.astimezone(tz)
