"""Secrets are planted in every column; then everything that Prefect and the ledger keep is searched."""

import os
from pathlib import Path

import pytest

from dpcore.errors import DPReleaseError
from tests.flows.search import occurrences

SECRET = "SECRET7391"
NUMBER = 8675309


@pytest.mark.slow
def test_a_refused_table_leaves_no_value_behind(prefect, plan_path, survey, own_home):
    from flows.release import release

    survey.loc[5, "region"] = SECRET
    survey.loc[6, "income"] = float(NUMBER)
    survey.to_parquet(plan_path.parent / "survey.parquet")
    with pytest.raises(DPReleaseError):
        release(str(plan_path), "leak", str(plan_path.parent / "out"))
    os.remove(plan_path.parent / "survey.parquet")
    assert occurrences(prefect, [SECRET, NUMBER]) == []
    assert occurrences(plan_path.parent, [SECRET, NUMBER]) == []
    assert occurrences(own_home, [SECRET, NUMBER]) == []


@pytest.mark.slow
def test_an_unforeseen_failure_is_told_without_its_text(prefect, plan_path, own_home, monkeypatch):
    from flows.release import release

    def stumble(*_: object) -> None:
        raise ValueError(f"could not convert {SECRET}")

    monkeypatch.setattr("tasks.draw._read_tally", stumble)
    with pytest.raises(DPReleaseError, match="draw failed with ValueError") as caught:
        release(str(plan_path), "leak", str(plan_path.parent / "out"))
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    assert occurrences(prefect, [SECRET]) == []
    kept = occurrences(own_home, [SECRET])
    assert kept  # a trace for every release that failed
    assert {Path(trace).parent for trace in kept} == {own_home / "failures"}
    assert all(Path(trace).stat().st_mode & 0o077 == 0 for trace in kept)
    assert (own_home / "failures").stat().st_mode & 0o077 == 0
