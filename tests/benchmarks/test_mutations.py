"""The planted faults still fit the code, and the command notices one and misses none that is planted."""

import subprocess
import sys

import pytest

from benchmarks.mutations.__main__ import ROOT, apply, summary
from benchmarks.mutations.audits import SUBJECTS
from benchmarks.mutations.faults import FAULTS


@pytest.mark.slow
def test_every_fault_fits_the_code_and_names_tests_that_exist():
    for fault in FAULTS:
        changed = apply(fault, (ROOT / fault.file).read_text())
        compile(changed, fault.file, "exec")
        assert all((ROOT / test).exists() for test in fault.tests), fault.name
        assert fault.unseen or not fault.audit or fault.audit in SUBJECTS, fault.name


def test_there_are_enough_faults_and_each_has_its_own_name():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 60


@pytest.mark.slow
def test_the_command_says_which_faults_are_noticed():
    command = [
        sys.executable,
        "-m",
        "benchmarks.mutations",
        "--only",
        "privacy line prices nothing",
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    row = "| the privacy line prices nothing | `dpcore/line/privacy_line.py` | `test_privacy_line.py::"
    assert row in run.stdout
    assert "noticed by: 1 of 1 faults" in run.stdout


def test_a_miss_of_the_tests_is_an_error_and_of_an_audit_a_miss_of_more_than_a_tenth(capsys):
    seen = [["`test_x.py`", "sees it"]] * 9
    assert summary(["tests", "short"], [*seen, ["`test_x.py`", "misses it"]]) == 0
    assert summary(["tests", "short"], [*seen[1:], ["`test_x.py`", "misses it"]]) == 1
    assert summary(["tests", "short"], [*seen, ["misses it", "cannot: a reason"]]) == 1
    assert "short audit: 9 of 9" in capsys.readouterr().out
