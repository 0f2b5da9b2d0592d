"""A release of a survey that stays in its engine."""

import ibis
import pyarrow as pa
import pytest

from flows.cli import main
from tests.conftest import write_plan
from tests.flows.search import occurrences
from tests.tasks.ledger.test_postgresql import PASSWORD, fresh_url


@pytest.fixture
def plan_path(plan_document, tmp_path):
    plan_document["source"] = {"postgresql": "env:SURVEY_DATABASE", "table": "public.survey"}
    return write_plan(tmp_path, plan_document)


def test_explain_needs_no_engine(plan_path, monkeypatch, capsys):
    monkeypatch.delenv("SURVEY_DATABASE", raising=False)
    assert main(["explain", str(plan_path)]) == 0
    assert "SURVEY_DATABASE" not in capsys.readouterr().out


@pytest.mark.slow
def test_nothing_of_postgresql_but_tallies_comes_near_a_release(
    prefect, plan_path, survey, own_home, tmp_path, monkeypatch
):
    from flows.release import release
    from tasks import draw

    url = fresh_url("postgresql", tmp_path)
    monkeypatch.setenv("SURVEY_DATABASE", url)
    table = pa.Table.from_pandas(survey, preserve_index=False)
    ibis.connect(url).create_table("survey", table)
    kept, read = [], draw._read_tally

    def look(path, domain):
        workspace = path.parent.parent
        kept.extend(p.name for p in workspace.rglob("*") if p.is_file() and p.suffix != ".npy")
        return read(path, domain)

    monkeypatch.setattr(draw, "_read_tally", look)
    assert release(str(plan_path), "engine", str(tmp_path / "out")).endswith("survey/engine")
    assert set(kept) == {"in-use"}
    for folder in (prefect, own_home, tmp_path / "out"):
        assert occurrences(folder, [PASSWORD]) == []
