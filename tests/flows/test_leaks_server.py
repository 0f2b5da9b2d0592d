"""Secrets in every column, runs that succeed and that fail, a real Prefect server: then the search."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.leak_runs import LEAKED, SECRETS
from tests.flows.search import occurrences, values_in
from tests.flows.served import free_port, own_environment, prefect_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ran(tmp_path_factory, put_database) -> tuple[Path, dict]:
    """The folder in which everything was left, the server too, and what the runs told."""
    folder = tmp_path_factory.mktemp("leaks")
    for name in ("server", "client", "tmp", "user"):
        (folder / name).mkdir(mode=0o700)
    put_database(folder / "server")
    port = free_port()
    environment = own_environment(folder / "home") | {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "HOME": str(folder / "user"),
        "TMPDIR": str(folder / "tmp"),
        "OPENBLAS_NUM_THREADS": "1",
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
    }
    own = environment | {"PREFECT_HOME": str(folder / "server")}
    with prefect_server(port, own, folder / "server.log"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.flows.leak_runs", str(folder)],
            env=environment
            | {
                "PREFECT_HOME": str(folder / "client"),
                "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
                # As talkative as Prefect can be made.
                "PREFECT_LOGGING_LEVEL": "DEBUG",
                "PREFECT_LOGGING_EXTRA_LOGGERS": "dprelease,duckdb,pandera,ibis,sqlalchemy",
                "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
            },
            cwd=folder,
            capture_output=True,
            text=True,
        )
        (folder / "client.log").write_text(done.stderr)
        assert done.returncode == 0, done.stderr[-3000:]
    for path in (folder / "surveys").iterdir():
        path.unlink()
    told = json.loads(done.stdout.splitlines()[-1])
    (folder / "told.json").write_text(json.dumps(told["ends"]))
    return folder, told


def test_the_runs_end_as_they_should(ran):
    _, told = ran
    ends = dict(told["ends"])
    assert ends.pop("good") == "published"
    assert len(ends) == 20
    stumbled = [name for name in ends if name.startswith("stumbling")]
    for name in stumbled:
        assert "Error: " in ends.pop(name), name
    assert {name: end for name, end in ends.items() if not end.startswith(("Data", "Input"))} == {}


def test_no_secret_is_left_anywhere(ran):
    folder, _ = ran
    searched = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.name for path in searched}
    assert {"prefect.db", "ledger.sqlite", "manifest.json", "people.parquet"} <= names
    failures = folder / "home" / "failures"
    found = [place for place in occurrences(folder, SECRETS) if str(failures) not in place]
    size = sum(path.stat().st_size for path in searched)
    print(f"{len(searched)} files, {size:,} bytes, {len(SECRETS)} secrets: {len(found)} hits")
    assert found == []


def test_the_traces_of_unforeseen_errors_are_for_their_owner_alone(ran):
    folder, _ = ran
    failures = folder / "home" / "failures"
    assert occurrences(failures, SECRETS)
    for path in (failures, *failures.iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_working_files_were_closed_to_others_and_are_gone(ran):
    folder, told = ran
    assert told["working"]
    assert told["open"] == []
    assert [path for path in map(Path, told["working"]) if path.exists()] == []
    assert [path.name for path in (folder / "home" / "private").iterdir()] == [".lock"]
    assert not list((folder / "tmp").rglob("*.duckdb*"))


def test_what_a_careless_flow_leaks_is_found(ran):
    folder, _ = ran
    assert values_in(folder / "server", LEAKED) | values_in(folder / "client", LEAKED) == {*LEAKED}
