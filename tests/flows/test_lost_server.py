"""A Prefect server that dies while a release runs: the release says what became of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dpcore.accounting.budget import Budget
from tasks.ledger import Ledger
from tests.bare import small_plan
from tests.flows.served import free_port, own_environment, prefect_server

pytestmark = pytest.mark.slow

RELEASE = """
import os, signal, sys
from flows import course
from flows.cli import main

audit = course.audit_shortly

def end_server_and_audit(*args, **kwargs):
    os.killpg(int(sys.argv[1]), signal.SIGKILL)
    return audit(*args, **kwargs)

course.audit_shortly = end_server_and_audit
sys.exit(main(["run", "plan.yaml", "--release-id", "r1", "--out", "out"]))
"""


@pytest.fixture
def environment(tmp_path):
    """A folder with a plan, whose commands use a Prefect server of this port."""
    small_plan(tmp_path)
    own = own_environment(tmp_path / "home") | {"PREFECT_HOME": str(tmp_path / "prefect")}
    return own | {"PREFECT_API_URL": f"http://127.0.0.1:{free_port()}/api"}


@pytest.fixture
def server(tmp_path, environment, put_database):
    """The id of a Prefect server's process group, which ends with the test."""
    put_database(tmp_path / "prefect")
    port = int(environment["PREFECT_API_URL"].split(":")[2].split("/")[0])
    with prefect_server(port, environment, tmp_path / "server.log") as process:
        yield process.pid


def run(folder, environment, *program):
    return subprocess.run(
        [sys.executable, *program], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_a_release_outlives_its_server(tmp_path, environment, server):
    done = run(tmp_path, environment, "-c", RELEASE, str(server))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out/survey/r1\n"
    assert (tmp_path / "out/survey/r1/manifest.json").exists()
    assert "published, but not announced: the Prefect server does not answer" in done.stderr
    assert "does not show that this run has ended" in done.stderr
    assert not any(
        word in done.stderr for word in ("INFO", "ERROR", "EventsWorker", "Error logging")
    )


def test_a_server_that_is_not_there_charges_nothing_and_has_its_own_exit_code(
    tmp_path, environment
):
    arguments = ("run", "plan.yaml", "--release-id", "r1", "--out", "out")
    environment["DPRELEASE_EVENTS"] = str(tmp_path / "events")
    done = run(tmp_path, environment, "-m", "flows.cli", *arguments)
    assert done.returncode == 7, done.stderr
    assert "the Prefect server at PREFECT_API_URL does not answer" in done.stderr
    assert "Traceback" not in done.stderr
    (event,) = map(json.loads, (tmp_path / "events").read_text().splitlines())
    facts = {"event": "run", "dataset": "survey", "release_id": "r1", "outcome": "7"}
    assert event.items() >= facts.items()
    assert not (tmp_path / "home" / "ledger.sqlite").exists()


def test_a_wiped_database_of_prefect_costs_no_second_draw_and_no_second_charge(
    tmp_path, environment, own_home, put_database
):
    from flows.release import release

    put_database(tmp_path / "prefect")  # without the first run
    place, name = tmp_path / "out" / "survey" / "r1", "tables/people.parquet"
    first = Path(release(str(tmp_path / "plan.yaml"), "r1", str(tmp_path / "out")))
    drawn = (first / name).read_bytes()
    place.rename(tmp_path / "gone")  # drawn, and not published when Prefect was wiped
    own = {k: v for k, v in environment.items() if k != "PREFECT_API_URL"}
    arguments = ("run", "plan.yaml", "--release-id", "r1", "--out", "out")
    done = run(tmp_path, own, "-m", "flows.cli", *arguments)
    assert done.returncode == 0, done.stderr
    assert (place / name).read_bytes() == drawn
    ledger = Ledger(f"sqlite:///{own_home}/ledger.sqlite", create=False)
    assert ledger.spent("survey") == Budget.of(1)
