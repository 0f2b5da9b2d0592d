"""Releases from Python: the same line, ledger and words as the command line, without Prefect."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

import dprelease
from dprelease.frames import frame_of_columns
from flows.operation import progress
from schemas.plan import load_plan
from tasks.survey.memory import MemoryTable
from tasks.survey.private_file import FILE, TABLE, connect
from tasks.survey.steps import ingest_survey
from tests.bare import PLAN, leave_out_audits, small_plan
from tests.conftest import ROOT
from tests.flows.served import BRIEFLY

FRAME = pd.DataFrame({"sex": ["F", "M"] * 20, "age": range(20, 60)})

NEVER = """
import logging, os, sys
import dprelease
heavy = {"prefect", "duckdb", "pydantic", "scipy", "pandas"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
plan = dprelease.load_plan("plan.yaml")
print(dprelease.explain(plan))
assert not {"prefect", "duckdb"} & set(sys.modules)
dprelease.release(plan, release_id="r1")
print(dprelease.open_bundle("published/survey/r1"))
dprelease.audit(plan, draws=200, quick=True)
assert "prefect" not in sys.modules
assert not logging.getLogger().handlers
assert not os.path.exists(os.path.expanduser("~/.prefect"))
"""

BARE = """
import sys
for name in ("scipy", "pydantic", "yaml", "prefect", "duckdb", "sqlalchemy", "formulaic", "jinja2"):
    sys.modules[name] = None
import dprelease
bundle = dprelease.open_bundle("published/survey/r1")
assert len(bundle.table("people")) == 6, bundle
for ask in (lambda: bundle.total("people"), lambda: dprelease.Plan):
    try:
        ask()
    except dprelease.InputError as error:
        print(error)
"""


def document(**changes: Any) -> dict[str, Any]:
    """The plan as a dictionary that names no source."""
    plan = yaml.safe_load(PLAN) | changes
    del plan["source"]
    return plan


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    leave_out_audits(monkeypatch.setattr)
    return tmp_path / "out"


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A Python program in a process of its own, whose home is the folder."""
    home = {"HOME": str(folder), "DPRELEASE_HOME": str(folder / "home")}
    home["PYTHONPATH"] = os.pathsep.join([BRIEFLY, str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=home, capture_output=True, text=True
    )


@pytest.mark.slow
def test_nothing_imports_prefect_or_is_said_and_the_base_needs_three_packages(tmp_path):
    small_plan(tmp_path)
    done = run(NEVER, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(BARE, tmp_path)
    assert done.returncode == 0, done.stderr
    total, plan = done.stdout.splitlines()
    assert "run: pip install scipy pydantic pyyaml formulaic jinja2" in total
    assert plan.startswith("dprelease.Plan: needs ")


def copied(source: object, folder: Path) -> list[tuple[Any, ...]]:
    """What ingest makes of a source."""
    plan = load_plan(document() | {"source": "none"}).model_copy(update={"source": source})
    workspace = folder / str(len(list(folder.iterdir())))
    ingest_survey(plan, workspace)
    with connect(workspace / FILE) as connection:
        return sorted(connection.execute(f"FROM {TABLE}").fetchall(), key=repr)


@pytest.mark.slow
@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME.astype({"sex": "category", "age": "Int16"}),
        FRAME.set_index(np.arange(40)[::-1]).assign(
            age=FRAME["age"].astype(float)[::-1].to_numpy()
        ),
        FRAME.assign(sex=FRAME["sex"].where(FRAME["age"] > 30), Sex=1),
    ],
    ids=["plain", "categories", "other index and floats", "nulls and a lookalike"],
)
def test_a_table_in_memory_is_ingested_as_the_file_that_would_be_written_of_it(frame, tmp_path):
    frame.to_parquet(tmp_path / "survey.parquet")
    expected = copied(str(tmp_path / "survey.parquet"), tmp_path)
    assert len(expected) == 40
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    several = [frame, arrow, arrow.to_reader()]
    if "Sex" not in frame:  # a relation renames one of them
        several.append(duckdb.sql("SELECT sex, age FROM arrow"))
    for table in several:
        assert copied(MemoryTable(table), tmp_path) == expected


@pytest.mark.slow
def test_a_polars_table_is_a_source(tmp_path):
    polars = pytest.importorskip("polars")
    assert copied(MemoryTable(polars.from_pandas(FRAME)), tmp_path) == copied(
        MemoryTable(FRAME), tmp_path
    )


@pytest.mark.slow
def test_a_table_in_memory_says_nothing_and_stays_in_its_process(out, own_home):
    secret = FRAME.assign(sex=["F", {"secret": 77123}] * 20)
    with pytest.raises(dprelease.InputError) as refused:
        dprelease.release(document(), secret, out=out)
    wrong = FRAME.assign(age=77123)
    with pytest.raises(dprelease.DataError) as invalid:
        dprelease.release(document(), wrong, out=out)
    for error in (refused.value, invalid.value):
        assert "77123" not in str(error)
        assert error.__cause__ is error.__context__ is None
    assert "77123" not in repr(MemoryTable(wrong))
    with pytest.raises(TypeError, match="does not leave its process"):
        pickle.dumps(MemoryTable(wrong))
    dprelease.release(document(), FRAME, out=out)
    assert list(own_home.rglob("*.duckdb*")) == []


@pytest.mark.slow
def test_a_data_frame_becomes_a_bundle_that_the_ledger_has_paid_for(out, tmp_path, monkeypatch):
    ledger = tmp_path / "other.sqlite"
    monkeypatch.setenv("DPRELEASE_LEDGER", "sqlite:///mine")
    plan = dprelease.load_plan(document())
    bundle = dprelease.release(plan, FRAME, release_id="r1", ledger=ledger, out=out)
    assert os.environ["DPRELEASE_LEDGER"] == "sqlite:///mine"
    paid = dprelease.Ledger(f"sqlite:///{ledger}")
    assert str(paid.remaining("survey").alpha) == "1"
    again = dprelease.release(plan, FRAME, release_id="r1", ledger=ledger, out=out)
    assert again.path == bundle.path
    assert str(paid.remaining("survey").alpha) == "1"
    assert "this release" in str(dprelease.explain(plan, ledger))
    dprelease.release(plan, FRAME, ledger=ledger, out=out)
    with pytest.raises(dprelease.BudgetError):
        dprelease.release(plan, FRAME, ledger=ledger, out=out)


@pytest.mark.slow
def test_a_bundle_gives_frames_and_answers_with_errors(out):
    bundle = dprelease.release(document(), FRAME, release_id="r1", out=out)
    people = bundle.table("people")
    assert isinstance(people, pd.DataFrame)
    assert len(people) == 6
    assert len(bundle.sample("everybody", 7)) == 7
    assert list(bundle.best("people")["estimate"]) == pytest.approx(list(people["best_estimate"]))
    total = bundle.total("people", lambda t: t["age_from"] >= 42)
    assert " ± " in repr(total)
    assert "replicate_01" in bundle.table("people", replicates=True)
    assert "replicate_01" not in people
    assert bundle.sources("people") == ["people", "sexes"]
    shown = bundle._repr_html_()
    assert "<td>microdata/everybody</td><td>40</td>" in shown
    assert bundle.manifest["guarantee"]["statement"][:40] in shown
    assert "microdata/everybody" in repr(bundle)
    with pytest.raises(dprelease.InputError, match=r"has no table 'nobody'; did you mean .* or "):
        bundle.table("nobody")
    with pytest.raises(dprelease.InputError, match="did you mean 'microdata/everybody'"):
        bundle.table("everybody")
    (bundle.path / "report.html").write_text("")
    with pytest.raises(dprelease.BundleError, match=r"report.html was changed"):
        dprelease.open_bundle(bundle.path)
    (bundle.path / "manifest.json").write_text("{")
    with pytest.raises(
        dprelease.BundleError, match=r"json: is not a valid manifest; it was changed"
    ):
        dprelease.open_bundle(bundle.path)


@pytest.mark.slow
def test_rows_are_chosen_as_in_a_pandas_data_frame(out):
    frame = FRAME.assign(job=pd.Series([None, "cook", "smith", "cook"] * (len(FRAME) // 4)))
    plan = document()
    plan["columns"]["job"] = {"type": "categorical", "nullable": True}
    plan["columns"]["job"]["categories"] = ["cook", "smith"]
    plan["releases"] = [{"name": "jobs", "kind": "histogram", "columns": ["job"]}]
    plan["synthesis"] = []
    bundle = dprelease.release(plan, frame, out=out)
    table = bundle.table("jobs")
    (nobody,) = bundle.best("jobs").loc[table["job"].isna(), "estimate"]
    for chosen in (lambda t: t["job"].isna(), table["job"].isna()):
        assert bundle.total("jobs", chosen).value == pytest.approx(nobody)
    cooks = bundle.share("jobs", lambda t: t["job"] == "cook", lambda t: t["job"].notna())
    assert 0 < cooks.value < 1
    with pytest.raises(dprelease.InputError, match="has no column 'jub'; did you mean 'job'"):
        bundle.total("jobs", lambda t: t["jub"] == "cook")


def test_whole_numbers_stay_whole_beside_nulls():
    holes = {"age": np.ma.masked_array([1, 2**60 + 1], [True, False]), "n": np.array([1, 2])}
    made = frame_of_columns(holes)
    assert [str(value) for value in made["n"]] == ["1", "2"]
    assert str(made["age"][1]) == str(2**60 + 1)


@pytest.mark.slow
def test_a_release_that_needs_approval_waits_for_it(out):
    plan = document(publication={"title": "A small survey", "approval": True})
    with pytest.raises(dprelease.ApprovalError, match="waits for a disclosure officer") as waiting:
        dprelease.release(plan, FRAME, release_id="r1", out=out)
    assert waiting.value.release_id == "r1"
    assert not (out / "survey" / "r1").exists()
    from tasks.workplace.home import ledger_url

    dprelease.Ledger(ledger_url()).decide("survey", "r1", True, who="A. Officer", why="read it")
    bundle = dprelease.release(plan, FRAME, release_id="r1", out=out)
    assert bundle.manifest["approval"]["who"] == "A. Officer"


def test_errors_have_the_words_of_the_command_line(tmp_path, capsys):
    from flows.cli import main

    path = small_plan(tmp_path)
    path.write_text(path.read_text().replace("rows: 40\nprivacy", "rows: many\nprivacy"))
    with pytest.raises(dprelease.PlanError) as wrong:
        dprelease.explain(path)
    assert main(["explain", str(path)]) == wrong.value.exit_code
    assert str(wrong.value) in capsys.readouterr().err
    with pytest.raises(dprelease.PlanError, match="the plan is not valid\n  rows"):
        dprelease.load_plan(document(rows="many"))
    with pytest.raises(dprelease.InputError, match="source: the plan names no table"):
        dprelease.release(document())
    with pytest.raises(AttributeError, match="no attribute 'releases'"):
        _ = dprelease.releases


def test_a_dictionary_is_the_plan_of_its_file(tmp_path):
    path = small_plan(tmp_path)
    given = document()
    assert dprelease.load_plan(given).digest == dprelease.load_plan(path).digest
    assert given == document()  # unchanged
    assert dprelease.load_plan(given, {"rows": 41}).rows == 41
    with pytest.raises(dprelease.InputError, match="overrides"):
        dprelease.load_plan(dprelease.load_plan(given), {"rows": 41})
    with pytest.raises(dprelease.InputError, match="neither the name of a file nor a dictionary"):
        dprelease.load_plan([given])
    given["columns"]["age"]["outside"] = "drop"
    with pytest.raises(dprelease.InputError, match=r"columns.age.outside: .*write `drop` as"):
        dprelease.load_plan(given)


@pytest.mark.slow
def test_an_audit_reads_as_a_table_and_holds_its_results():
    found = dprelease.audit(document(), draws=200, quick=True, progress=False)
    assert [result.passed for result in found.facts] == [True] * 3
    assert "all together" in str(found)
    assert found._repr_html_().startswith("<pre>")


@pytest.mark.slow
def test_a_bar_of_a_notebook_moves_with_the_steps_and_goes_at_their_end(out, monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(progress, "_notebook", lambda: shown.append)
    dprelease.release(document(), FRAME, release_id="r1", out=out)
    parts = [float(part) for each in shown for part in re.findall('value="(.*?)"', each)]
    assert parts == sorted(parts)
    assert 0.8 < parts[-1] <= 1
    assert shown[-1] == ""
    assert any("people" in each for each in shown)
    assert progress.LOGGER.propagate
    assert not progress.LOGGER.handlers
