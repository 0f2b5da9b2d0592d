"""Which bundles a folder holds: what nobody can read is an error, never an empty folder."""

import errno
import os
import re
import shutil
from pathlib import Path

import pytest

import dprelease
from dpcore.accounting.budget import Budget
from dpcore.errors import BundleError, DPReleaseError, InputError, UnreadableError
from tasks.budget.reconcile import reconcile
from tasks.bundle.digests import DIGESTS, MANIFEST, is_bundle
from tasks.bundle.folders import folders_in
from tasks.bundle.verify import read_manifest, verify_files
from tasks.catalogue import write_catalogue
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan


def closed(folder: Path, monkeypatch) -> None:
    """Another user's folder or file, also for a superuser: nobody lists it, or looks into it."""
    scandir, lstat, open_ = os.scandir, Path.lstat, Path.open

    def refuse(path):
        if not isinstance(path, int) and folder in (Path(path), *Path(path).parents):
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(
        Path, "open", lambda path, *how, **k: refuse(path) or open_(path, *how, **k)
    )
    monkeypatch.setattr(os, "scandir", lambda path=".": refuse(path) or scandir(path))
    monkeypatch.setattr(Path, "lstat", lambda path: refuse(path.parent) or lstat(path))


def test_folders_are_named_but_for_those_of_unfinished_work(tmp_path):
    for name in ("b", "a", ".r1.staging"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    assert folders_in(tmp_path) == {"a": tmp_path / "a", "b": tmp_path / "b"}
    assert folders_in(tmp_path / "missing") == {}
    for name in (MANIFEST, DIGESTS):
        assert not is_bundle(tmp_path / "a")
        (tmp_path / "a" / name).touch()
        assert is_bundle(tmp_path / "a")
        (tmp_path / "a" / name).unlink()


def test_what_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    closed(tmp_path, monkeypatch)
    for look in (folders_in, is_bundle):
        with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
            look(tmp_path)


@pytest.mark.parametrize("inner", ["", "r1"], ids=["of the dataset", "of a bundle"])
def test_nothing_is_charged_where_published_bundles_cannot_be_seen(tmp_path, monkeypatch, inner):
    plan = small_plan(tmp_path)
    (tmp_path / "out" / "survey" / "r1").mkdir(parents=True)
    closed(tmp_path / "out" / "survey" / inner, monkeypatch)
    with pytest.raises(InputError, match="cannot be read"):
        release(plan, "r2", tmp_path / "out")
    ledger = Ledger(ledger_url())
    assert ledger.spent("survey") == Budget()
    if inner:
        (fault,) = reconcile(ledger, tmp_path / "out")
        assert "r1: cannot be read (Permission denied)" in fault.what
        return
    with pytest.raises(InputError, match="cannot be read"):
        reconcile(ledger, tmp_path / "out")


@pytest.fixture
def bundle(published, tmp_path, monkeypatch) -> Path:
    leave_out_audits(monkeypatch.setattr)
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out" / "survey" / "r1"


@pytest.mark.parametrize("inner", ["", MANIFEST, "tables/people.parquet"])
def test_a_bundle_that_cannot_be_read_is_neither_missing_nor_damaged(
    tmp_path, bundle, monkeypatch, capsys, inner
):
    closed(bundle / inner, monkeypatch)
    why = rf"survey/r1.*{inner}: cannot be read \(Permission denied\)"
    for look in (read_and_verify, dprelease.open_bundle):
        with pytest.raises(UnreadableError, match=why):
            look(bundle)
    with pytest.raises(UnreadableError, match=why):
        release(tmp_path / "plan.yaml", "r1", tmp_path / "out")
    (fault,) = reconcile(Ledger(ledger_url()), tmp_path / "out")
    assert re.search(why, fault.what)
    assert fault.remedy.startswith("make it readable")
    with pytest.raises(BundleError, match=why.removeprefix("survey/")):
        write_catalogue(tmp_path / "out", tmp_path / "site")


def read_and_verify(bundle: Path) -> None:
    verify_files(bundle, read_manifest(bundle))


@pytest.mark.slow
def test_an_unreadable_manifest_stops_other_releases_only_where_the_ledger_does_not_know_it(
    tmp_path, bundle, monkeypatch
):
    closed(bundle / MANIFEST, monkeypatch)
    release(tmp_path / "plan.yaml", "r2", tmp_path / "out")
    shutil.copytree(tmp_path / "out" / "survey" / "r2", tmp_path / "out" / "survey" / "r0")
    closed(tmp_path / "out" / "survey" / "r0" / MANIFEST, monkeypatch)
    with pytest.raises(UnreadableError, match=rf"r0/{MANIFEST}: cannot be read"):
        release(tmp_path / "plan.yaml", "r3", tmp_path / "out")


@pytest.mark.slow
def test_a_bundle_that_could_not_be_sealed_is_published_by_the_same_process(tmp_path, monkeypatch):
    """As in a notebook, once there is room again: its files were looked at before."""
    leave_out_audits(monkeypatch.setattr)
    plan, out = small_plan(tmp_path), tmp_path / "out"
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        patch.setattr(Ledger, "seal", lambda *_: (_ for _ in ()).throw(full))
        with pytest.raises(DPReleaseError, match="a disk is full: make room"):
            release(plan, "r1", out)
    assert not is_bundle(out / "survey" / "r1")
    bundle = release(plan, "r1", out)
    verify_files(bundle, read_manifest(bundle))
    assert Ledger(ledger_url()).spent("survey") == Budget.of(1)
