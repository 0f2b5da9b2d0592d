"""The measurement of what an agency occupies counts every bundle that is not whole, or not paid once."""

import os

import pytest

from tests import bare
from tests.flows.served import Served
from tests.soak.footprint import KINDS, faults, occupied

pytestmark = pytest.mark.slow


def test_a_damaged_bundle_and_a_forgotten_charge_are_faults(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRELEASE_LEDGER", f"sqlite:///{tmp_path}/ledger.sqlite")
    bare.leave_out_audits(monkeypatch.setattr)
    bundle = bare.release(bare.small_plan(tmp_path), "r1", tmp_path / "out")
    served = Served(tmp_path)
    assert faults(served) == []
    (bundle / "tables" / "people.parquet").unlink()
    assert faults(served) == [f"{bundle}: verify exits with 6"]
    bundle.rename(bundle.with_name("r2"))
    assert len(faults(served)) == 3


def test_this_process_occupies_something():
    assert all(occupied(os.getpid())[kind] > 0 for kind in KINDS)
