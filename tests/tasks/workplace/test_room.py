"""A full disk is called a full disk, whatever failed first."""

from collections import namedtuple

import duckdb
import pytest

from dpcore.errors import DataError, InputError
from tasks.survey.ingest import ingest
from tests.tasks.survey.tables import column, csv

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def full(monkeypatch):
    monkeypatch.setattr("tasks.workplace.room.shutil.disk_usage", lambda _: Usage(2**20, 2**20, 0))


@pytest.mark.parametrize("space", [True, False])
def test_a_copy_that_fails_on_a_full_disk_does_not_blame_the_survey(
    space, tmp_path, monkeypatch, own_home
):
    source = csv(tmp_path / "t.csv", "x\na\n")
    if not space:
        monkeypatch.setattr(
            "tasks.workplace.room.shutil.disk_usage", lambda _: Usage(2**20, 2**20, 0)
        )

    def stopped(*_: object) -> int:
        raise duckdb.FatalException("No space left")

    monkeypatch.setattr("tasks.survey.ingest._copy", stopped)
    kind, says = (DataError, "is damaged") if space else (InputError, "make room")
    with pytest.raises(kind, match=says):
        ingest(source, {"x": column("categorical", categories=["a"])}, 1, tmp_path / "work")
