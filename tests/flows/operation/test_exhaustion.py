"""Schedules that were paused for lack of budget are all found again once their budget covers a run."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from httpx import ConnectError

from flows.operation import exhaustion
from schemas.plan import load_plan
from tasks.ledger import ChargeRequest, Ledger, charges_of
from tasks.workplace.places import FLOW_RUN
from tests.bare import PLAN

PAGE = 2
TAGS = ["dprelease", exhaustion.EXHAUSTED]


class Server:
    """A server that lists ``PAGE`` paused deployments at a time, and goes away after some changes."""

    def __init__(self, number: int, changes: int) -> None:
        self.deployments = [
            SimpleNamespace(id=i, name=f"plan-{i}", tags=TAGS) for i in range(number)
        ]
        self.paused, self.changes = {*range(number)}, changes

    def read_deployments(self, *, offset: int = 0, **_: object) -> list[SimpleNamespace]:
        return self.deployments[offset : offset + PAGE]

    def resume_deployment(self, which: int) -> None:
        self._change()
        self.paused.discard(which)

    def update_deployment(self, which: int, changed) -> None:
        self._change()
        self.deployments[which].tags = changed.tags

    def _change(self) -> None:
        if self.changes == 0:
            raise ConnectError("gone")
        self.changes -= 1


@pytest.fixture
def granted(monkeypatch):
    """Every plan may run once more."""
    for name in ("known_plan", "load_plan", "ledger_if_any", "covered"):
        monkeypatch.setattr(exhaustion, name, lambda *_: True)


@pytest.mark.parametrize("changes", [0, 1])
def test_a_server_that_goes_away_meanwhile_leaves_the_schedule_to_be_found(
    granted, monkeypatch, changes
):
    server = Server(1, changes)
    monkeypatch.setattr(exhaustion, "get_client", lambda **_: nullcontext(server))
    with pytest.raises(ConnectError):
        exhaustion.resume_schedules()
    assert server.deployments[0].tags == TAGS
    server.changes = 2
    assert exhaustion.resume_schedules() == ["plan-0"]
    assert server.deployments[0].tags == ["dprelease"]
    assert not server.paused


def test_schedules_beyond_the_first_page_are_resumed_too(granted, monkeypatch):
    server = Server(2 * PAGE + 1, changes=100)
    monkeypatch.setattr(exhaustion, "get_client", lambda **_: nullcontext(server))
    assert len(exhaustion.resume_schedules()) == 2 * PAGE + 1
    assert not server.paused


def test_a_release_of_any_name_is_not_taken_for_the_next_one(tmp_path, monkeypatch):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    plan = load_plan(path)
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.grant(plan.dataset, plan.budget.granted.budget, who="the board", why="two runs")
    # In a process of the server, which publishes nothing and knows no folder of bundles.
    monkeypatch.setenv(FLOW_RUN, "a run")
    monkeypatch.delenv("DPRELEASE_OUT", raising=False)
    for release_id in ("first", "next"):
        assert exhaustion.covered(plan, ledger)
        ledger.reserve(ChargeRequest(plan.dataset, release_id, plan.digest, charges_of(plan)))
    assert not exhaustion.covered(plan, ledger)
    assert not exhaustion.covered(plan.changed(rows=plan.rows + 1), ledger)
