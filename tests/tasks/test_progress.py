"""Who waits for a long step is told how far it is, at most so often, and in public words."""

import pytest

from dpcore.progress import report
from tasks import progress
from tasks.step import guarded


def test_a_step_tells_how_far_it_is_and_not_too_often(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))

    def fit(name: str) -> int:
        for sweep in range(1, 7):
            report("records fitted, sweeps", sweep, 6)
        return 7

    with caplog.at_level("INFO", logger="dprelease"):
        assert guarded(fit, "write tables: {name}")("all-pairs") == 7
    told = [line for line in caplog.messages if "sweeps" in line]
    assert told[0].endswith("write tables: all-pairs (records fitted, sweeps: 3 of 6)")
    assert len(told) == 2


def test_outside_a_step_nobody_is_told(caplog: pytest.LogCaptureFixture):
    report("records fitted, sweeps", 1, 6)
    assert not caplog.messages
