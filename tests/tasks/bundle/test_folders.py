"""Which bundles a folder holds: what nobody can read is an error, never an empty folder."""

import os
from pathlib import Path

import pytest

from dpcore.budget import Budget
from dpcore.errors import InputError
from tasks.budget.reconcile import reconcile
from tasks.bundle.digests import MANIFEST
from tasks.bundle.folders import folders_in, has_manifest
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.bare import release, small_plan


def closed(folder: Path, monkeypatch) -> None:
    """Another user's folder, also for a superuser: nobody lists it, or looks into it."""
    scandir, lstat = os.scandir, Path.lstat

    def refuse(path):
        if folder in (Path(path), *Path(path).parents):
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", lambda path=".": refuse(path) or scandir(path))
    monkeypatch.setattr(Path, "lstat", lambda path: refuse(path.parent) or lstat(path))


def test_folders_are_named_but_for_those_of_unfinished_work(tmp_path):
    for name in ("b", "a", ".r1.staging"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    assert folders_in(tmp_path) == {"a": tmp_path / "a", "b": tmp_path / "b"}
    assert folders_in(tmp_path / "missing") == {}
    assert not has_manifest(tmp_path / "a")
    (tmp_path / "a" / MANIFEST).touch()
    assert has_manifest(tmp_path / "a")


def test_what_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    closed(tmp_path, monkeypatch)
    for look in (folders_in, has_manifest):
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
    with pytest.raises(InputError, match="cannot be read"):
        reconcile(ledger, tmp_path / "out")
