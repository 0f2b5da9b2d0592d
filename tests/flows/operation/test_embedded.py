"""The API in a run's own process starts with a database as this version of Prefect needs it."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.flows.served import BRIEFLY

RUN = """
from flows.operation.embedded import prefect_api
from prefect import flow
with prefect_api():
    flow(lambda: None, name="old")()
"""

LOOK = """
from flows.operation.embedded import prefect_api
from prefect.client.orchestration import get_client
from tests.waiting import wait_for
with prefect_api(), get_client(sync_client=True) as client:
    wait_for(lambda: not client.read_flow_runs(), "the deletion of old runs")
"""


@pytest.mark.slow
def test_a_start_migrates_an_older_database_and_deletes_records_of_old_runs(
    tmp_path: Path, put_database: Callable[[Path], None]
):
    put_database(tmp_path / "prefect")
    with closing(sqlite3.connect(tmp_path / "prefect" / "prefect.db")) as database, database:
        database.execute("DELETE FROM flow_run")  # of tests that ran before
    newest = version(tmp_path)
    process(tmp_path, "-m", "prefect", "server", "database", "downgrade", "-y")
    assert version(tmp_path) != newest
    process(tmp_path, "-c", RUN)
    assert version(tmp_path) == newest
    with closing(sqlite3.connect(tmp_path / "prefect" / "prefect.db")) as database, database:
        old = database.execute("UPDATE flow_run SET end_time = '2020-01-01 00:00:00.000000'")
        assert old.rowcount == 1
    process(tmp_path, "-c", LOOK)


def process(home: Path, *command: str) -> None:
    """Run Python with these arguments."""
    here = {"PREFECT_HOME": str(home / "prefect"), "DPRELEASE_HOME": str(home)}
    here["PYTHONPATH"] = os.pathsep.join([BRIEFLY, str(ROOT)])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")} | here
    subprocess.run([sys.executable, *command], env=environment, check=True, capture_output=True)


def version(home: Path) -> str:
    """The last migration that is in the database."""
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as read:
        ((newest,),) = read.execute("SELECT version_num FROM alembic_version")
    return newest
