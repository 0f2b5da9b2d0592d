"""Models of a plan: checked before anything is charged, fitted after the draw, the same every time."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpcore.errors import InputError, PlanError
from schemas.plan import load_plan
from tasks.bundle import drawn
from tasks.explain.analysis import check_analyses
from tasks.ledger import Ledger
from tasks.report.page import REPORT
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan
from tests.tasks.made_up import opened
from tests.tasks.report.pages import page_of, part_of

MODEL = {"name": "pay", "title": "What pay depends on", "formula": "income ~ children"}


def planned(document, *models):
    kept = [section for section in document["releases"] if section["name"] == "pairs"]
    records = [section for section in document["synthesis"] if section["name"] == "everybody"]
    document |= {"releases": kept, "synthesis": records, "analyses": [*models]}
    return load_plan(document)


@pytest.mark.slow
def test_the_table_is_what_the_reader_fits_and_every_document_says_so(plan_document, tmp_path):
    plan = planned(plan_document, MODEL)
    bundle = opened(plan, tmp_path)
    (record,) = bundle.manifest.analyses
    assert (record.source, record.family) == ("pairs", "gaussian")
    table, found = bundle.table("analyses/pay"), bundle.fit("income ~ children")
    for key, values in found.frame().items():
        assert np.array_equal(table[key], values)
    assert np.ma.getmaskarray(table["reason"]).all()
    metadata = pq.read_schema(bundle.path / record.file.path).metadata
    assert metadata[b"dprelease.formula"] == b"income ~ children"
    assert record.title in (bundle.path / "README.md").read_text()
    package = json.loads((bundle.path / "datapackage.json").read_text())
    fields = {r["path"]: r["schema"]["fields"] for r in package["resources"]}[record.file.path]
    assert all(each["description"] for each in fields)
    part = part_of(page_of(bundle.path), "analysis-pay")
    drawn = [n.attributes.get("class") for n in part.all()]
    assert drawn.count("whisker") == drawn.count("bar") == 2  # the key, and a term
    assert all(term in part.words for term in table["term"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"formula": "income ~ height"}, r"analyses\[0\].formula: 'height' is not one of"),
        ({"formula": "income ~ {income.values}"}, "is not allowed in a plan's formula"),
    ],
)
def test_a_model_that_is_wrong_by_itself_is_refused_with_the_plan(plan_document, change, said):
    with pytest.raises(PlanError, match=said):
        planned(plan_document, MODEL | change)


def test_what_the_plan_would_not_measure_is_refused_before_anything_is_charged(
    tmp_path, monkeypatch
):
    leave_out_audits(monkeypatch.setattr)
    path = small_plan(tmp_path)
    formula = "age ~ C(sex)"
    asked = f"analyses: [{{name: a, title: Age by sex, formula: '{formula}'}}]\n"
    text = re.sub("  - {name: people.*\n", "", path.read_text())
    text = text.replace("synthesis:\n  - {name: everybody, from: people, rows: 40}\n", asked)
    path.write_text(text)
    with pytest.raises(PlanError, match=r"analyses\[0\].formula: .* also: \[\[sex, age\]\]"):
        release(path, "r1", tmp_path / "out")
    assert not Ledger(ledger_url()).release("survey", "r1")


@pytest.mark.slow
def test_a_model_that_the_noise_leaves_without_solution_says_so(
    plan_document, tmp_path, monkeypatch
):
    plan = planned(plan_document, MODEL)
    check_analyses(plan)

    def unsolved(*_):
        raise InputError("the model has no solution in the records; use fewer terms")

    monkeypatch.setattr(drawn, "fit", unsolved)
    bundle = opened(plan, tmp_path)
    (record,) = bundle.manifest.analyses
    assert record.file.rows == 0
    for file in ("README.md", REPORT):
        assert "the model has no solution in the records" in (bundle.path / file).read_text()
    page_of(bundle.path)
