"""No way of starting the product contacts another host: Prefect, for one, would report its use.

Each entry point runs in a process of its own, as it would on an operator's machine: no variable of
this process but PATH and a file of certificates is passed on, and it believes that it has a terminal,
because Prefect's reports leave out runs without one.  ``alone/sitecustomize.py`` notes and refuses every
contact.
"""

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.bare import small_plan
from tests.conftest import ROOT
from tests.flows.served import BRIEFLY, PROXY
from tests.tasks.bundle.test_sign import write_keys
from tests.waiting import SECONDS

COMMANDS = """
from flows.cli import main
for arguments in {calls}:
    assert main([*arguments]) == 0, arguments
"""
BUNDLE = "out/survey/r1"
SIGNED = ("--who", "A. Officer", "--why", "test")
CALLS = [
    ("init", "survey.parquet", "--out", "first.yaml"),
    ("explain", "plan.yaml", "--target", "people=5"),
    ("run", "plan.yaml", "--release-id", "r1", "--out", "out"),
    ("audit", "plan.yaml", "--draws", "4000"),
    ("schema",),
    ("sign", BUNDLE, "--key", "agency.pem"),
    ("verify", BUNDLE),
    ("ledger", "grant", "survey", "--alpha", "9", *SIGNED),
    ("ledger", "show"),
    ("ledger", "check", "--out", "out"),
    ("catalogue", "out", "--out", "site"),
    ("evaluate", "survey.parquet", "survey.parquet", "--dataset", "other", "--page", "e.html"),
]
DRAWN = """
from pathlib import Path
from schemas.plan import load_plan
from tasks.budget.charge import reserve_budget
from tasks.workplace.job import ReleaseJob
from tests.tasks.made_up import publish_made_up
plan = load_plan(Path("plan.yaml"), {"budget.requested.alpha": "1/2"})
for release_id in ("d1", "d2"):
    publish_made_up(plan, release_id, Path("out"))
reserve_budget.fn(ReleaseJob(plan, "d3"))
"""
OFFICERS = [
    ("approve", "survey", "d1", *SIGNED),
    ("reject", "survey", "d2", *SIGNED),
    ("ledger", "void", "survey", "d3", "people", *SIGNED),
    ("ledger", "reprice", "survey"),
    ("ledger", "roles"),
]
PYTHON = """
import os
import dprelease
print(dprelease.release("plan.yaml", release_id="r1", out="out"))
os.environ["DPRELEASE_PLANS"] = "."
from flows.ad_hoc import ad_hoc
print(ad_hoc("plan", alpha="0.4", requester="B. Analyst"))
"""


class Alone:
    """A machine without other hosts: a home, a plan with its survey, and the contacts refused."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.contacts = folder, folder / "contacts"
        opened = 'operation: {requests: {releases: [people], part: "1"}}\n'
        with small_plan(folder).open("a") as plan:
            plan.write(opened)
        self.environment = {
            "PATH": os.environ["PATH"],
            "SSL_CERT_FILE": os.environ["SSL_CERT_FILE"],
            "HOME": str(folder),
            "OUTSIDE_CONTACTS": str(self.contacts),
            "PYTHONPATH": os.pathsep.join([BRIEFLY, str(ROOT)]),
            **PROXY,
        }

    def run(self, program: str) -> str:
        """Run a Python program to its end; returns what it printed on its terminal."""
        ours, theirs = pty.openpty()
        printed: list[bytes] = []
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        reading = threading.Thread(target=_read, args=(ours, printed))
        reading.start()
        code = process.wait(SECONDS)
        reading.join(SECONDS)
        said = b"".join(printed).decode()
        assert code == 0, said
        return said

    def outside(self) -> str:
        return self.contacts.read_text() if self.contacts.exists() else ""


def _read(terminal: int, printed: list[bytes]) -> None:
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # nobody has the other end any more
            return
        if not part:
            return
        printed.append(part)


@pytest.fixture
def alone(tmp_path, put_database) -> Alone:
    put_database(tmp_path / ".local/share/dprelease/prefect")
    return Alone(tmp_path)


def test_a_contact_with_another_host_would_be_noticed(alone):
    alone.run("import socket\ntry: socket.create_connection(('192.0.2.1', 80))\nexcept OSError: 0")
    alone.run("import socket\ntry: socket.getaddrinfo('example.org', 80)\nexcept OSError: 0")
    assert alone.outside().count("192.0.2.1") == alone.outside().count("example.org") == 1


@pytest.mark.slow
def test_releases_and_flows_called_from_python_contact_nobody(alone):
    said = alone.run(PYTHON)
    assert alone.outside() == ""
    assert "all of survey" in said  # the bar
    assert "out/survey/r1" in said
    assert "temporary server" not in said  # Prefect's own, with its defaults
    assert (alone.folder / "out/survey/r1/manifest.json").exists()


@pytest.mark.slow
def test_no_command_contacts_anybody(alone):
    write_keys(alone.folder, "agency")
    alone.run(COMMANDS.format(calls=CALLS) + DRAWN + COMMANDS.format(calls=OFFICERS))
    assert alone.outside() == ""
