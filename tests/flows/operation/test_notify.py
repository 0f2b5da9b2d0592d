"""Whoever looks after the releases is told of trouble, in public words."""

import asyncio
import http.server
import json
import shutil
import socket
import threading
from contextlib import suppress
from datetime import date, timedelta

import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import (
    BudgetError,
    BundleError,
    DPReleaseError,
    LostLedgerError,
)
from tasks.catalogue import write_catalogue
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.conftest import write_plan

pytestmark = pytest.mark.usefixtures("prefect")

SECRET = "SECRET7391"


@pytest.fixture
def told(monkeypatch):
    """What a local webhook was told, as documents."""
    received = []

    class Webhook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    monkeypatch.setenv("DPRELEASE_WEBHOOK", f"http://127.0.0.1:{server.server_port}/hush-hush")
    yield received
    server.shutdown()
    server.server_close()


@pytest.fixture
def small_plan(plan_path, plan_document):
    plan_document["releases"] = plan_document["releases"][:1]
    plan_document["synthesis"] = []
    plan_document["budget"]["requested"] = {"alpha": "4"}
    return write_plan(plan_path.parent, plan_document)


def release(plan, release_id="r1", **options):
    from flows.release import release

    return release.with_options(**options)(str(plan), release_id, str(plan.parent / "out"))


@pytest.mark.slow
def test_a_failure_is_told_without_private_values(told, small_plan, survey):
    survey.loc[3, "sex"] = SECRET
    survey.to_parquet(small_plan.parent / "survey.parquet")
    with pytest.raises(DPReleaseError):
        release(small_plan)
    trouble = "the survey table does not fit the plan"
    assert told == [
        {
            "text": f"survey r1: {trouble}",
            "dataset": "survey",
            "release_id": "r1",
            "trouble": trouble,
        }
    ]


@pytest.mark.slow
def test_an_unforeseen_failure_is_told_once_when_its_retries_are_used_up(
    told, small_plan, monkeypatch
):
    def stumble(*_):
        raise ValueError(SECRET)

    monkeypatch.setattr("tasks.draw.tallies", stumble)
    with pytest.raises(DPReleaseError):
        release(small_plan, retries=1, retry_delay_seconds=0)
    assert [document["trouble"] for document in told] == ["failed, after 2 attempts"]


@pytest.mark.slow
def test_the_end_of_a_schedule_is_told_some_runs_ahead(told, small_plan, plan_document):
    operation = {"schedule": {"cron": "0 6 1 * *"}, "warn_runs": 0}
    write_plan(small_plan.parent, plan_document | {"operation": operation})
    release(small_plan, "r1")
    assert told == []
    del operation["warn_runs"]  # and so a run before the last
    write_plan(small_plan.parent, plan_document | {"operation": operation})
    release(small_plan, "r1")
    release(small_plan, "r1")  # a retry: the notice is not repeated
    assert len(told) == 1
    left = "1 more run of this plan: the schedule exhausts the budget on"
    assert told[0]["trouble"].startswith(f"the budget is low: it covers {left}")
    Ledger(ledger_url()).grant("survey", Budget.of(4), who="the board", why="another quarter")
    release(small_plan, "r1")
    assert len(told) == 2, "it is low once more, after a grant"


def yearly_run(small_plan, plan_document, **facts):
    """A run that was due this New Year, of a schedule that began the year before."""
    from uuid import uuid4

    from prefect.client.schemas.objects import FlowRun
    from prefect.types._datetime import now

    year = now("UTC").year
    schedule = {"cron": "0 0 1 1 *", "since": f"{year - 1}-01-01"}
    write_plan(small_plan.parent, plan_document | {"operation": {"schedule": schedule}})
    return year, FlowRun(
        flow_id=uuid4(),
        parameters={"plan": str(small_plan)},
        expected_start_time=now("UTC").replace(year, 1, 1, 0, 0, 0),
        **facts,
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheduled", [True, False])
def test_a_scheduled_run_tells_of_the_others_that_were_due_and_are_missing(
    told, small_plan, plan_document, scheduled
):
    from prefect.states import Completed

    from flows.operation.notify import HOOKS
    from flows.release import release as flow

    year, run = yearly_run(small_plan, plan_document, auto_scheduled=scheduled)
    Ledger(ledger_url())
    for hook in HOOKS["on_completion"]:
        hook(flow, run, Completed())
        hook(flow, run, Completed())  # a later run: it is not said again
    late = [document for document in told if "late" in document["trouble"]]
    assert [document["release_id"] for document in late] == [
        f"plan-{year - 1}0101-000000"
    ] * scheduled
    if scheduled:
        assert f"was due at {year - 1}-01-01T00:00 (UTC)" in late[0]["trouble"]
    assert any(hook.__name__ == "notify_late" for hook in HOOKS["on_failure"])


@pytest.mark.slow
def test_an_audit_above_its_claim_is_told(told, small_plan, monkeypatch):
    from fractions import Fraction

    from flows.audit import audit

    monkeypatch.setattr("dpcore.releases.counts.histogram.Histogram.l1_sensitivity", Fraction(1, 8))
    monkeypatch.setattr("flows.audit.deployed_run", lambda: None)
    monkeypatch.setenv("DPRELEASE_PLANS", str(small_plan.parent))
    with pytest.raises(DPReleaseError):
        audit(small_plan.stem, quick=True)
    assert told[0]["trouble"] == "an audit found more privacy loss than is claimed"
    assert told[0]["release_id"].startswith("plan-audit-")


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (BudgetError("too little is left"), "the budget does not allow the release"),
        (BundleError("damaged"), "a bundle is damaged or contradicts the ledger"),
        (LostLedgerError("old"), "a published bundle or a draw is missing in the ledger"),
    ],
)
def test_what_ended_a_run_is_told_also_where_a_loop_runs(
    told, small_plan, plan_document, error, trouble
):
    from prefect.states import Failed

    from flows.operation.notify import notify_failure
    from flows.release import release as flow

    _, run = yearly_run(small_plan, plan_document)

    async def cell():  # of a notebook
        notify_failure(flow, run, Failed(data=error))

    asyncio.run(cell())
    notify_failure(flow, run, Failed(data=error))
    assert [document["trouble"] for document in told] == [trouble] * 2


def test_a_crash_and_a_run_whose_worker_was_killed_are_told(told, small_plan, plan_document):
    from prefect.states import Crashed

    from flows.operation.notify import CRASHED, notify_crash, notify_lost
    from flows.release import release as flow

    year, run = yearly_run(small_plan, plan_document, auto_scheduled=True)
    notify_crash(flow, run, Crashed())
    notify_lost([("release", run)])  # as serve does at its start
    assert [d["text"] for d in told] == [f"survey plan-{year}0101-000000: {CRASHED}"] * 2


def test_a_webhook_that_fails_changes_nothing(small_plan, monkeypatch, caplog):
    monkeypatch.setenv("DPRELEASE_WEBHOOK", "http://127.0.0.1:1/hush-hush")
    from tasks.workplace.notify import notify

    notify("survey", "r1", "failed")
    assert "posting to DPRELEASE_WEBHOOK failed" in caplog.text
    assert "hush-hush" not in caplog.text


def test_a_webhook_that_never_ends_its_answer_holds_nobody_up(small_plan, monkeypatch, caplog):
    from tasks.workplace import notify

    monkeypatch.setattr(notify, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def trickle():
            with server.accept()[0] as connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not ended.wait(0.02):
                    connection.sendall(b"a: b\r\n")

        threading.Thread(target=trickle, daemon=True).start()
        port = server.getsockname()[1]
        monkeypatch.setenv("DPRELEASE_WEBHOOK", f"http://127.0.0.1:{port}/hush-hush")
        notify.notify("survey", "r1", "failed")
        ended.set()
    assert "posting to DPRELEASE_WEBHOOK took longer than 0.1 s" in caplog.text
    assert "hush-hush" not in caplog.text


def deployed(plans):
    """The deployment of the plan, as its Prefect server has it."""
    from prefect.client.orchestration import get_client

    from flows.deployment.deploy import deploy

    deploy(plans, 2)
    with get_client(sync_client=True) as client:
        return client.read_deployment_by_name("release/plan")


@pytest.mark.slow
def test_a_schedule_without_budget_is_told_once_paused_and_resumed_by_a_grant(
    told, small_plan, plan_document, monkeypatch, capsys
):
    from prefect.client.orchestration import get_client
    from prefect.states import Failed

    from flows.cli import main
    from flows.operation.notify import notify_failure
    from flows.release import release as flow

    monkeypatch.setenv("DPRELEASE_PLANS", str(small_plan.parent))
    with get_client(sync_client=True) as client:
        monkeypatch.setenv("PREFECT_API_URL", str(client.api_url))
        _, run = yearly_run(small_plan, plan_document, auto_scheduled=True)
        document = plan_document | {"operation": {"schedule": {"cron": "0 0 1 1 *"}}}
        write_plan(small_plan.parent, document)
        before = deployed(small_plan.parent)
        assert not before.paused
        for release_id in ("r1", "r2"):
            release(small_plan, release_id)  # 2 of 10 are left, and a run costs 4
        told.clear()
        run.deployment_id = before.id
        for _ in range(3):
            notify_failure(flow, run, Failed(data=BudgetError("too little is left")))
        assert [d["trouble"] for d in told] == [
            "the budget does not allow the release; the schedule is paused until the dataset is"
            " granted more"
        ]
        assert client.read_deployment(before.id).paused
        document["operation"]["allow_exhaustion"] = True
        write_plan(small_plan.parent, document)
        assert deployed(small_plan.parent).paused  # deploying again does not start it
        grant = ["ledger", "grant", "survey", "--who", "the board", "--why", "more", "--alpha"]
        assert main([*grant, "1"]) == 0
        assert client.read_deployment(before.id).paused  # 3 are left
        assert main([*grant, "1"]) == 0
        assert "The schedule of plan is resumed." in capsys.readouterr().out
        after = client.read_deployment(before.id)
        assert not after.paused
        assert after.tags == before.tags


@pytest.mark.slow
def test_a_release_that_no_run_makes_is_told_once_while_there_is_budget(
    told, small_plan, plan_document
):
    from flows.operation.notify import notify_missed

    daily = {"schedule": {"cron": "0 0 * * *", "since": date.today() - timedelta(days=2)}}
    write_plan(small_plan.parent, plan_document | {"operation": daily})
    notify_missed(small_plan.parent)
    assert told == []  # there is no ledger yet, so nothing was ever due
    release(small_plan, "r1")
    told.clear()
    for _ in range(2):
        notify_missed(small_plan.parent)
    assert len(told) == len({each["release_id"] for each in told}) >= 2
    assert all("late: was due at" in each["trouble"] for each in told)
    release(small_plan, "r2")  # 2 of 10 are left, and a run costs 4
    told.clear()
    daily["schedule"]["since"] -= timedelta(days=1)
    write_plan(small_plan.parent, plan_document | {"operation": daily})
    notify_missed(small_plan.parent)
    assert told == []


@pytest.mark.slow
def test_a_damaged_bundle_is_told_once_and_stops_no_other_release(told, small_plan, caplog):
    out = small_plan.parent / "out"
    release(small_plan, "r1")
    shutil.copytree(out / "survey" / "r1", out / "survey" / ".r0.0.staging")
    for hurt in ("r1", ".r0.0.staging"):
        (out / "survey" / hurt / "manifest.json").write_text("{")
    told.clear()
    for _ in range(2):
        release(small_plan, "r2")
    assert [(d["release_id"], d["trouble"]) for d in told if "damaged" in d["trouble"]] == [
        ("r1", "its bundle is damaged; see `dprelease ledger check`")
    ]
    assert (out / "survey" / "r2" / "manifest.json").exists()
    with pytest.raises(BundleError, match=r"survey/r1.* is not a valid manifest") as named:
        write_catalogue(out, out)
    assert str(named.value).count("valid manifest") == 1
