"""A clock that jumps: nothing is drawn or charged twice."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError
from tasks.budget.reconcile import reconcile
from tasks.bundle.verify import read_manifest
from tasks.catalogue import write_catalogue
from tasks.ledger import Ledger, records
from tasks.report.history import history_until
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan

NOW = datetime(2026, 2, 15, tzinfo=UTC)
YEAR = timedelta(days=365)


class Clock(datetime):
    """The system's time, as these tests set it."""

    time = NOW

    @classmethod
    def now(cls, tz=None):
        Clock.time += timedelta(seconds=1)
        return cls.time.astimezone(tz)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(Clock, "time", NOW)
    monkeypatch.setattr(records, "datetime", Clock)
    return Clock


@pytest.fixture
def plan(tmp_path, monkeypatch) -> Path:
    """A release, of which the grant covers three."""
    leave_out_audits(monkeypatch.setattr)
    path = small_plan(tmp_path)
    text = path.read_text().replace('granted: {alpha: "2"', 'granted: {alpha: "3"')
    path.write_text(text)
    return path


@pytest.mark.slow
def test_nothing_is_drawn_or_charged_twice_and_nothing_overspent(plan, clock):
    out, digests, jumps = plan.parent / "out", {}, (YEAR, -2 * YEAR)
    for release_id, jump in zip(("r1", "r2", "r3"), (timedelta(), *jumps), strict=True):
        clock.time += jump
        manifest = read_manifest(release(plan, release_id, out))
        digests[release_id] = [record.draw_sha256 for record in manifest.releases]
        told = history_until(Ledger(ledger_url()).history("survey"), manifest.drawn_at)
        assert told.granted == Budget.of(3)
    ledger = Ledger(ledger_url())
    for jump in jumps:
        clock.time += jump
        for release_id, drawn in digests.items():
            manifest = read_manifest(release(plan, release_id, out))
            assert [record.draw_sha256 for record in manifest.releases] == drawn
        with pytest.raises(BudgetError):
            release(plan, "r4", out)
    assert ledger.spent("survey") == Budget.of(3)
    assert ledger.granted("survey") == Budget.of(3)
    assert reconcile(ledger, out) == []
    write_catalogue(out, out)
