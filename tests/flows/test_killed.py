"""Charged once, drawn once, published whole: whenever the process was killed (see ``kills.py``), and
however many machines were at it (see ``races.py``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tasks.ledger.test_postgresql import fresh_url

pytestmark = pytest.mark.slow


def kills(folder: Path, *arguments: str) -> dict[str, dict]:
    return json.loads(run("tests.flows.kills", folder, *arguments))


def run(program: str, folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", program, str(folder), *arguments]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # do not fork a process with threads
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stderr)
    return done.stdout


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_no_kill_costs_a_charge_a_draw_or_a_whole_bundle(engine, tmp_path):
    own = [] if engine == "sqlite" else [fresh_url(engine, tmp_path)]
    own += ["--composition", "basic" if engine == "sqlite" else "concentrated"]
    rows = kills(tmp_path, *own, "--random", "4")
    assert {label: row["violations"] for label, row in rows.items() if row["violations"]} == {}
    assert sum(row["kills"] for row in rows.values()) > (40 if engine == "sqlite" else 16)
    for boundary in ("after the noise is drawn", "before ledger COMMIT"):
        assert rows[boundary]["kills"] > 0
    assert ("before file rename" in rows) == (engine == "sqlite")
    assert rows["at random"]["kills"] == 4


@pytest.mark.parametrize(
    ("sabotage", "boundary", "harm"),
    [
        (
            "two transactions",
            "UPDATE ledger_charge",
            "the ledger disagrees with itself: RESERVED, but a draw is stored",
        ),
        ("no staging", "file mkdir", "a partial bundle"),
    ],
)
def test_a_product_that_is_broken_on_purpose_is_found_out(sabotage, boundary, harm, tmp_path):
    rows = kills(tmp_path, "--random", "0", "--sabotage", sabotage, "--only", boundary)
    assert any(harm in violation for row in rows.values() for violation in row["violations"])


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_two_machines_that_publish_the_same_release_make_one_bundle(engine, tmp_path):
    own = [] if engine == "sqlite" else [fresh_url(engine, tmp_path)]
    assert run("tests.flows.races", tmp_path, *own, "--pairs", "3").split() == []


def test_machines_that_share_a_staging_folder_are_found_out(tmp_path):
    harm = run("tests.flows.races", tmp_path, "--sabotage", "one staging for all")
    assert "a run failed" in harm or "a partial bundle" in harm
