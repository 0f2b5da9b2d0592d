"""A schedule that was paused for lack of budget is found again, whatever happens to the server."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from httpx import ConnectError

from flows.operation import exhaustion


class Server:
    """A server that goes away at its first request to change something."""

    def __init__(self) -> None:
        self.deployment = SimpleNamespace(id=1, name="plan", tags=["dprelease", "budget exhausted"])
        self.paused, self.answers = True, 0

    def read_deployments(self, **_: object) -> list[SimpleNamespace]:
        return [self.deployment]

    def resume_deployment(self, _: object) -> None:
        self._answer()
        self.paused = False

    def update_deployment(self, _: object, changes) -> None:
        self._answer()
        self.deployment.tags = changes.tags

    def _answer(self) -> None:
        if self.answers == 0:
            raise ConnectError("gone")
        self.answers -= 1


def test_a_server_that_goes_away_while_a_schedule_is_resumed_leaves_it_to_be_found(monkeypatch):
    server = Server()
    monkeypatch.setattr(exhaustion, "get_client", lambda **_: nullcontext(server))
    for name in ("known_plan", "load_plan", "Ledger"):
        monkeypatch.setattr(exhaustion, name, lambda *_: None)
    for name in ("ledger_exists", "covered"):
        monkeypatch.setattr(exhaustion, name, lambda *_: True)
    monkeypatch.setattr(exhaustion, "ledger_url", str)
    for answers in (0, 1):
        server.answers = answers
        with pytest.raises(ConnectError):
            exhaustion.resume_schedules()
        assert "budget exhausted" in server.deployment.tags
    server.answers = 2
    assert exhaustion.resume_schedules() == ["plan"]
    assert server.deployment.tags == ["dprelease"]
    assert not server.paused
