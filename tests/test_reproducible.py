"""Tests draw the same noise in each run, and different noise each."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

INNER = """
import pytest
from dpcore.sampling.source import SystemSource

@pytest.fixture(scope="module", params=["a", "b"])
def shared(request):
    return SystemSource().words(1)[0]

@pytest.mark.parametrize("first", [True, False])
def test_words(shared, first):
    print("drawn", first, shared, SystemSource().words(1)[0])
"""
HOOKS = "from tests.reproducible import pytest_fixture_setup, pytest_runtest_protocol"


@pytest.mark.slow
@pytest.mark.parametrize(("hooks", "same"), [(HOOKS, True), ("", False)])
def test_a_test_and_what_it_shares_draw_the_same_in_each_run(tmp_path, hooks, same):
    (tmp_path / "conftest.py").write_text(hooks)
    (tmp_path / "test_inner.py").write_text(INNER)

    def drawn(*chosen: str) -> list[str]:
        # Without plugins, which are most of what a run takes here.
        command = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", *chosen]
        run = subprocess.run(
            [*command, "--rootdir", str(tmp_path), str(tmp_path)],
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.lstrip(".") for line in run.stdout.splitlines() if "drawn" in line]

    every, again, alone = drawn(), drawn(), drawn("-k", "False")
    assert len(every) == 4
    assert (every == again) == same
    assert ([line for line in every if "False" in line] == alone) == same
    assert len({line.split()[-1] for line in every}) == 4
    assert len({line.split()[-2] for line in every}) == 2
