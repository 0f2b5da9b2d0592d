"""A release for which the disks have no room is refused before anything is charged."""

import errno
import shutil
from collections import namedtuple

import pytest

from dpcore.errors import DPReleaseError, InputError
from flows.cli import main
from schemas.plan import load_plan
from tasks.explain.work import bundle_bytes
from tasks.ledger import Ledger
from tasks.survey.steps import require_source
from tasks.workplace.home import ledger_exists, ledger_url
from tasks.workplace.step import guard

Usage = namedtuple("Usage", "total used free")


def disk(monkeypatch, free):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, free(path)))


def test_a_disk_without_room_for_the_bundle_is_named(prefect, plan_path, monkeypatch, capsys):
    disk(monkeypatch, lambda path: 2**20)
    assert main(["run", str(plan_path), "--out", str(plan_path.parent / "out")]) == 2
    told = capsys.readouterr().err
    assert "its disk has 1 MiB left, and the bundle needs about" in told
    assert "nothing was charged" in told
    assert not ledger_exists() or not Ledger(ledger_url()).spent("survey").alpha


def test_the_size_of_the_survey_is_not_told(plan_path, monkeypatch, own_home):
    plan = load_plan(plan_path)
    disk(monkeypatch, lambda path: 100)
    with pytest.raises(InputError, match="0 MiB left, too little for the private copy") as refused:
        require_source(plan)
    assert str(plan_path.with_name("survey.parquet").stat().st_size) not in str(refused.value)
    disk(monkeypatch, lambda path: 2**40)
    require_source(plan)


@pytest.mark.slow
def test_a_bundle_takes_less_than_is_asked_for(prefect, plan_path):
    out = plan_path.parent / "out"
    assert main(["run", str(plan_path), "--release-id", "r1", "--out", str(out)]) == 0
    taken = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert 2**20 / 2 < taken < bundle_bytes(load_plan(plan_path))


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "private words"), OSError("... No space left on device")]
)
def test_a_disk_that_is_full_in_mid_run_is_said_in_our_words(error):
    def fill():
        raise error

    with pytest.raises(DPReleaseError, match="a disk is full: make room") as refused:
        guard(fill, "fill")()
    assert "private" not in str(refused.value)
