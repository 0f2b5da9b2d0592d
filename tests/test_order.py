"""Every test is run once, and no process waits for the longest of another."""

from types import SimpleNamespace

import pytest

from tests.conftest import ROOT
from tests.order import LONG, spread


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_long_tests_begin_every_stretch_and_none_is_lost(processes):
    names = [f"{file}::{i}" for file in sorted(LONG) for i in range(9)]
    names = [*(f"tests/a.py::{i}" for i in range(500)), *names]
    names += [f"tests/z.py::{i}" for i in range(500)]
    items = [SimpleNamespace(nodeid=name) for name in names]
    found = [item.nodeid for item in spread(items, processes)]
    assert sorted(found) == sorted(names)
    for place in range(processes):
        begins = found[len(names) * place // processes].partition("::")[0]
        assert begins in LONG


def test_every_file_of_long_tests_is_there():
    assert all((ROOT / name).is_file() for name in LONG)
