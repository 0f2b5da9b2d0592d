"""The planted faults still fit the code, and the command notices one and misses none that is planted."""

import subprocess
import sys

import pytest

from benchmarks.mutations.__main__ import ROOT, apply
from benchmarks.mutations.faults import FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_code_and_names_tests_that_exist(fault):
    changed = apply(fault, (ROOT / fault.file).read_text())
    compile(changed, fault.file, "exec")
    assert all((ROOT / test).exists() for test in fault.tests)


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
    assert "| the privacy line prices nothing | `dpcore/privacy_line.py` | noticed |" in run.stdout
    assert "1 of 1 faults are noticed" in run.stdout
