"""`dprelease serve` with a real server and worker: schedules, approval, restarts, clean endings."""

import fcntl
import socket
import subprocess
import sys
from datetime import UTC, datetime
from uuid import uuid4

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError
from flows.cli import main
from flows.deployment import serve
from flows.operation.identity import release_id_of
from tasks.bundle.verify import read_manifest, verify_budget, verify_files
from tests.flows.served import PASSWORD, last_due
from tests.waiting import SECONDS, wait_for

REQUESTED = ("health", "hostile", "rush", "thesis")
"""Plans without a schedule, which are deployed for requests."""


def a_run(**facts) -> FlowRun:
    due = datetime(2026, 12, 1, 0, 15, tzinfo=UTC)
    return FlowRun(flow_id=uuid4(), expected_start_time=due, **facts)


def test_a_scheduled_run_is_named_by_the_time_at_which_it_was_due():
    late, repeated = a_run(auto_scheduled=True), a_run(auto_scheduled=True, run_count=3)
    assert release_id_of("release", late, "income") == "income-20261201-001500"
    assert release_id_of("release", repeated, "plans/income.yaml") == "income-20261201-001500"


def test_servers_that_are_started_here_forget_old_runs():
    from prefect.settings import get_current_settings

    vacuum = get_current_settings().server.services.db_vacuum
    assert vacuum.enabled_vacuum_types == {"events", "flow_runs", "orphans"}
    assert vacuum.retention_period.days == 90


def test_logs_of_years_are_cut_while_their_processes_write_on(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "LOG_BYTES", 10)
    with (tmp_path / "worker.log").open("ab", buffering=0) as log:
        for words in (b"first\n", b"second\n", b"third\n"):
            log.write(words)
            serve.shorten_logs(tmp_path)
    assert (tmp_path / "worker.log").read_bytes() == b"third\n"
    assert (tmp_path / "worker.log.1").read_bytes() == b"first\nsecond\n"


def test_two_people_who_ask_in_the_same_second_get_two_releases():
    ids = {release_id_of("ad hoc release", a_run(), "income") for _ in range(2)}
    assert len(ids) == 2
    assert all(name.startswith("income-ad-hoc-20261201-001500-") for name in ids)


@pytest.mark.slow
class TestServed:
    def test_plans_are_deployed_and_what_is_private_is_closed(self, served):
        names = served.deployed()
        assert names - {"poor"} == {*REQUESTED, "income", "ad-hoc-release", "audit-a-plan"}
        assert "draft.yaml: the plan is not valid" in "".join(served.said)
        server = served.folder / "home" / "server"
        assert server.stat().st_mode & 0o077 == 0
        for made in ("pages", "server.log", "worker.log"):  # by the server, and for both
            assert (server / made).stat().st_mode & 0o077 == 0

    def test_the_api_asks_for_the_password(self, served):
        assert httpx.post(f"{served.address}/api/flow_runs/filter", json={}).status_code == 401

    def test_the_form_knows_plans_releases_and_limits(self, served):
        fields = served.deployment("ad hoc release", "ad-hoc-release")["parameter_openapi_schema"]
        fields = fields["properties"]
        assert fields["plan"]["enum"] == sorted({*REQUESTED, "income"})
        assert fields["releases"]["items"]["enum"][0] == "health: people"
        assert all(field["description"] for field in fields.values())
        with pytest.raises(httpx.HTTPStatusError, match=r"409|422"):
            served.ask("census")

    def test_a_scheduled_run_is_the_same_release_whenever_it_runs(self, served):
        deployment = served.deployment("release", "income")
        run = served.first_due(deployment)
        following = datetime.fromisoformat(run["expected_start_time"])
        assert (following.day, following.hour, following.minute) == (1, 0, 15)  # six in Kathmandu
        due = last_due()
        release_id = f"income-{due:%Y%m%d-%H%M%S}"
        run = served.api(
            "POST",
            f"/deployments/{deployment['id']}/create_flow_run",
            state={"type": "SCHEDULED", "state_details": {"scheduled_time": due.isoformat()}},
        )
        assert served.settled(run["id"])["state_type"] == "COMPLETED"  # late
        spent, bundles = served.ledger.spent("income"), {*(served.out / "income").iterdir()}
        served.start_now(run["id"])  # once more
        assert served.settled(run["id"])["state_type"] == "COMPLETED"
        assert served.ledger.spent("income") == spent
        assert {*(served.out / "income").iterdir()} == bundles
        tasks = served.api("POST", "/task_runs/filter", flow_runs={"id": {"any_": [run["id"]]}})
        names = {task["name"] for task in tasks}  # one for each release, among others
        assert {"histogram: people (sex x region x age)", "density: wealth (income)"} <= names
        bundle = served.out / "income" / release_id
        manifest = read_manifest(bundle)
        verify_files(bundle, manifest)
        assert verify_budget(manifest, served.ledger) == Budget.of(4, "1e-6")
        assert bundle.stat().st_mode & 0o777 == 0o755
        assert bundle.parent.stat().st_mode & 0o777 == 0o755

    def test_a_run_waits_again_after_a_crash_and_is_rejected_after_a_restart(self, served):
        run = served.ask("health", alpha="0.3")["id"]
        assert served.settled(run)["state_name"] == "Suspended"
        spent = served.ledger.spent("health")
        assert spent.alpha > 0
        for state in ({"type": "CRASHED"}, {"type": "SCHEDULED", "name": "AwaitingRetry"}):
            served.own("POST", f"/flow_runs/{run}/set_state", state=state, force=True)
        assert served.settled(run)["state_name"] == "Suspended"
        preview = served.artifact(run, "approval-preview")["data"]
        assert "standard error of a count" in preview
        waits = {"event": {"name": ["prefect.flow-run.waits"]}}
        of_run = {"any_resource": {"id": [f"prefect.flow-run.{run}"]}}

        def told() -> int:
            return len(served.api("POST", "/events/filter", filter=waits | of_run)["events"])

        wait_for(lambda: told() == 2, "both notices", served.words)
        assert served.stop() == 0
        served.start()
        review = {"decision": "reject", "name": "C. Officer", "reason": "too fine"}
        served.answer(run, **review)
        ended = served.settled(run)
        assert ended["state_type"] == "FAILED"
        assert "rejected by C. Officer (too fine)" in ended["state"]["message"]
        assert "its budget stays spent" in ended["state"]["message"]
        assert served.ledger.spent("health") == spent
        assert not (served.out / "health").exists() or not any(
            path.name.endswith(run[-4:]) for path in (served.out / "health").iterdir()
        )

    def test_a_plan_that_cannot_be_paid_is_deployed_as_soon_as_it_can_be(self, served):
        assert "poor" not in served.deployed()
        served.ledger.grant("poor", Budget.of(76, "2e-5"), "the board", "a year of releases")
        wait_for(lambda: "poor" in served.deployed(), "the deployment", served.words)

    def test_deploying_contacts_nobody(self, served):
        """What the server and its runs contact is seen when it ends."""
        address = {"PREFECT_API_URL": f"{served.address}/api", "PREFECT_API_AUTH_STRING": PASSWORD}
        subprocess.run(
            [sys.executable, "-m", "flows.cli", "deploy", "--plans", "plans"],
            cwd=served.folder,
            env=served.environment | address,
            check=True,
            timeout=SECONDS,
        )
        assert served.contacts == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("serve", "--plans", "nowhere"), "no such folder of plans"),
        (("serve", "--runs-at-once", "0"), "--runs-at-once"),
        (("deploy", "--plans", "nowhere"), "PREFECT_API_URL"),
    ],
)
def test_what_cannot_be_served_is_refused(capsys, monkeypatch, arguments, says):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert main(list(arguments)) == 2
    assert says in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused(tmp_path, own_home, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--plans", str(tmp_path), "--port", port]) == 2
    assert "is in use" in capsys.readouterr().err


def test_what_a_killed_serve_left_keeps_the_home_to_itself(tmp_path, own_home, monkeypatch):
    """Its server and worker hold its lock: a second server would use the same database."""
    program = tmp_path / "prefect"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(serve.sys, "executable", str(program))
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with serve.run_module(["prefect"], tmp_path / "log", lock.fileno()):
            lock.close()  # as the system does with what is killed
            with pytest.raises(InputError, match="or a process left by a killed one"):
                serve._alone(tmp_path).__enter__()
    with serve._alone(tmp_path):
        pass
