"""Events of runs, and the metrics that are made of them and the ledger."""

import json
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError
from flows.cli import main
from tasks.budget.metrics import metrics_text
from tasks.ledger import Ledger
from tasks.workplace.events import record_event, recorded_run
from tasks.workplace.home import ledger_url
from tests.conftest import write_plan

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.fixture
def events(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv("DPRELEASE_EVENTS", str(path))
    return path


def run(plan: Path, *more: str) -> int:
    return main(["run", str(plan), "--out", str(plan.parent / "out"), *more])


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Each sample by its name and labels."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.slow
def test_runs_are_counted_by_how_they_end(plan_path, plan_document, events, capsys):
    plan_document["operation"] = {"schedule": {"cron": "0 6 1 * *", "since": "2026-01-01"}}
    plan = write_plan(plan_path.parent, plan_document)
    assert run(plan, "--release-id", "r1") == 0
    assert run(plan, "--set", "rows=401") == 2
    assert run(plan, "--set", "budget.requested.alpha=9") == 3
    capsys.readouterr()
    assert main(["ledger", "metrics", "--plans", str(plan.parent)]) == 0
    found = samples(capsys.readouterr().out)
    assert [found["dprelease_runs_total", "survey", code] for code in "023"] == [1, 1, 1]
    assert found["dprelease_budget", "alpha", "survey", "granted"] == 10
    assert found["dprelease_budget", "alpha", "survey", "left"] == 6
    assert found["dprelease_releases_total", "survey", "drawn"] == 1
    assert found["dprelease_late_releases", "survey"] >= 10
    assert found["dprelease_steps_seconds_count", "draw"] == 3
    assert found["dprelease_steps_seconds_sum", "publish"] > 0
    kinds = {name for name, *_ in found}
    assert {"dprelease_last_draw_timestamp_seconds", "dprelease_notices_total"} <= kinds
    for line in events.read_text().splitlines():
        assert json.loads(line)["event"] in ("step", "run", "notice")


class Pause(BaseException):
    """As Prefect's signal is called."""


@pytest.mark.parametrize(
    ("signal", "outcome"),
    [(None, "0"), (Pause, "waits"), (KeyboardInterrupt, "interrupted"), (InputError, "2")],
)
def test_a_run_is_recorded_however_it_ends(signal, outcome, events):
    with pytest.raises(signal) if signal else nullcontext(), recorded_run("d", "r"):
        if signal:
            raise signal
    (line,) = map(json.loads, events.read_text().splitlines())
    assert (line["dataset"], line["release_id"], line["outcome"]) == ("d", "r", outcome)


def test_events_that_cannot_be_written_stop_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("DPRELEASE_EVENTS", str(tmp_path))
    record_event("step", step="x")
    record_event("step", step="y")
    assert caplog.text.count("cannot be written") == 1


WHOLE = b'{"event": "run", "dataset": "d", "outcome": "0"}'


@pytest.mark.parametrize(
    "line",
    [
        b'{"event": "ru',
        b'{"event": "step", "step": "draw", "seconds": "long"}',
        b'{"event": "notice", "dataset": ["d"], "trouble": {}}',
        b'{"event": "run", "dataset": "\xff", "outcome": "0"}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_line_that_is_no_whole_event_is_left_out_and_counted(tmp_path, line):
    path = tmp_path / "events.jsonl"
    ledger = Ledger(ledger_url())
    ledger.grant("d", Budget.of(2), who="the board", why="a test")
    for lines in ([line, WHOLE], [WHOLE, line]):
        path.write_bytes(b"\n".join(lines))
        found = samples(metrics_text(ledger, {}, path, datetime.now(UTC)))
        assert found["dprelease_runs_total", "d", "0"] == 1
        assert found["dprelease_events_unread",] == 1
        assert found["dprelease_budget", "alpha", "d", "left"] == 2
