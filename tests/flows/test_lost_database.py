"""A database that crashes in mid-run: the run ends with words, and a retry finishes what it began."""

import signal

import pytest

from dpcore.errors import LedgerError
from schemas.plan import load_plan
from tasks.budget.reconcile import reconcile
from tasks.bundle.verify import read_manifest, verify_files
from tasks.ledger import Action, Ledger
from tasks.workplace.step import Step
from tests.bare import leave_out_audits, module_of, release, small_plan
from tests.tasks.ledger.server import PASSWORD, started

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def postgresql():
    """One that a test may crash: the others have theirs."""
    server = started()
    yield server
    server.remove()


@pytest.mark.parametrize(
    ("step", "drawn"),
    [("reserve_budget", 0), ("draw", 0), ("write_release", 2)],
)
def test_a_crash_costs_no_second_charge_and_no_second_draw(
    step, drawn, postgresql, tmp_path, monkeypatch
):
    postgresql.administer(f"CREATE DATABASE before_{step}")
    monkeypatch.setenv("DPRELEASE_LEDGER", postgresql.url(f"before_{step}"))
    leave_out_audits(monkeypatch.setattr)
    plan, out = small_plan(tmp_path), tmp_path / "out"
    granted = load_plan(plan).budget.granted.budget
    Ledger(postgresql.url(f"before_{step}")).grant("survey", granted, "the board", "a test")
    whole = getattr(module_of(step), step)

    def crashed(*args, **kwargs):
        postgresql.end(signal.SIGQUIT)
        return whole(*args, **kwargs)

    monkeypatch.setattr(module_of(step), step, Step(crashed, step, step))
    try:
        with pytest.raises(LedgerError) as caught:
            release(plan, "r1", out)
    finally:
        postgresql.start()
    assert PASSWORD not in str(caught.value)
    assert not [*out.glob("*/*/manifest.json")]
    ledger = Ledger(postgresql.url(f"before_{step}"), create=False)
    before = [line for line in ledger.history("survey") if line.action is Action.COMMIT]
    assert len(before) == drawn

    monkeypatch.setattr(module_of(step), step, whole)
    bundle = release(plan, "r1", out)
    verify_files(bundle, read_manifest(bundle))
    lines = ledger.history("survey")
    for action in (Action.RESERVE, Action.COMMIT):
        named = [line.release_name for line in lines if line.action is action]
        assert sorted(named) == ["people", "sexes"]
    assert [line for line in lines if line.action is Action.COMMIT] == before or not drawn
    assert ledger.spent("survey") == load_plan(plan).requested
    assert not [*reconcile(ledger, out)]
