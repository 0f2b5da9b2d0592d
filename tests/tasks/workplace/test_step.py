"""A long step reports its progress now and then, in public words."""

import pytest

from dpcore.progress import report
from tasks.workplace import step
from tasks.workplace.step import guard


def test_a_step_reports_progress_but_not_too_often(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(step.time, "monotonic", lambda: next(clock))

    def fit(name: str) -> int:
        for sweep in range(1, 7):
            report("records fitted, sweeps", sweep, 6)
        return 7

    with caplog.at_level("INFO", logger="dprelease"):
        assert guard(fit, "write tables: {name}")("all-pairs") == 7
    shown = [line for line in caplog.messages if "sweeps" in line]
    assert shown[0].endswith("write tables: all-pairs (records fitted, sweeps: 3 of 6)")
    assert len(shown) == 2


def test_outside_a_step_nothing_is_reported(caplog: pytest.LogCaptureFixture):
    report("records fitted, sweeps", 1, 6)
    assert not caplog.messages
