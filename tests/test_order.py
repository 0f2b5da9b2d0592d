"""Every test is run once, and no process waits for the longest of another."""

from types import SimpleNamespace

import pytest

from tests.conftest import ROOT
from tests.order import ALONE, LONG, spread

FILES = sorted(name for group in LONG for name in group)


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_long_tests_begin_every_stretch_and_none_is_lost(processes):
    names = [f"{file}::{i}" for file in FILES for i in range(9)]
    names = [*(f"tests/a.py::{i}" for i in range(500)), *names]
    names += [f"tests/z.py::{i}" for i in range(500)]
    items = [SimpleNamespace(nodeid=name) for name in names]
    found = [item.nodeid for item in spread(items, processes)]
    assert sorted(found) == sorted(names)
    for place in range(processes):
        begins = found[len(names) * place // processes].partition("::")[0]
        assert begins in FILES
    for group in {*LONG} - {ALONE}:  # together, so that one process runs them
        places = [at for at, name in enumerate(found) if name.partition("::")[0] in group]
        assert len(places) == places[-1] - places[0] + 1


def test_every_file_of_long_tests_is_there():
    assert all((ROOT / name).is_file() for name in FILES)
