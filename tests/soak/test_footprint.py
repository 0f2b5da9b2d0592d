"""The measurement of what an agency occupies counts every bundle that is not whole, or not paid once."""

import os
from types import SimpleNamespace

import pytest

from tests import bare
from tests.flows.served import Served
from tests.soak import footprint
from tests.soak.footprint import KINDS, faults, occupied
from tests.waiting import SECONDS

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


def test_releases_that_come_slowly_are_waited_for(tmp_path, monkeypatch):
    served, clock = Served(tmp_path), iter(range(10**9))
    hours = SimpleNamespace(monotonic=lambda: 0.9 * SECONDS * next(clock), sleep=lambda _: make())

    def make() -> None:
        number = len([*served.out.glob("*/*")])
        if number < 12:
            (served.out / "survey" / f"r{number}").mkdir(parents=True)
            (served.out / "survey" / f"r{number}" / "manifest.json").touch()

    monkeypatch.setattr(footprint, "time", hours)
    monkeypatch.setattr(footprint, "footprint", lambda _: {})
    assert [*footprint.footprints(served, releases=10, every=5)] == [
        {"releases": 5},
        {"releases": 10},
    ]
    with pytest.raises(TimeoutError, match="12 releases, and no more in"):
        [*footprint.footprints(served, releases=20, every=50)]


def test_this_process_occupies_something():
    assert all(occupied(os.getpid())[kind] > 0 for kind in KINDS)
