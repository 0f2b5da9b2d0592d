"""Several records of a unit, and weights: every stated sampling error says what it assumes."""

import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpcore.errors import InputError, PlanError
from dpcore.estimates.combine import combine
from dpcore.estimates.questions import correlation, independence, quantile
from schemas.plan import load_plan
from schemas.plan.analysis import Analysis
from tasks.explain.analysis import check_analyses
from tasks.report.page import REPORT
from tests.conftest import plan_of_every_kind
from tests.tasks.made_up import opened_once
from tests.tasks.report.pages import require_sound

UNIT = {"privacy_unit": {"column": "person", "max_rows": 4}, "neighbours": "add-remove"}
WEIGHTS = {"weights": {"column": "w", "largest": "10", "step": "1", "total": 2000}}
MODEL = {"name": "pay", "title": "What pay depends on", "formula": "income ~ children"}
BOUND = "One unit may have 4 records"


def published(document, folder, changes, *releases):
    document["releases"] = [r for r in document["releases"] if r["name"] == "pairs"]
    document["releases"] += releases
    several = {} if "cluster" in changes else {"implicates": 5}
    document["synthesis"] = [{"name": "all", "from": "pairs", "rows": 100} | several]
    document["budget"]["granted"] = document["budget"]["requested"] | {"alpha": "400"}
    document["budget"]["requested"]["alpha"] = "100"
    return opened_once(folder, document | {"analyses": [MODEL]} | changes)


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    moments = {"name": "sums", "kind": "moments", "columns": ["children", "sex"]}
    return published(plan_of_every_kind(), tmp_path_factory.mktemp("units"), UNIT, moments)


def words(text):
    return " ".join(re.sub("<[^>]*>", " ", text).split())


@pytest.mark.slow
def test_notes_tables_report_and_readme_say_that_the_sampling_error_is_a_bound(panel):
    found = panel.fit("income ~ children")
    questions = (
        correlation(panel.evidence, "income", "children"),
        independence(panel.evidence, "sex", "children"),
        quantile(panel.evidence, "income", 0.5),
    )
    for each in (found, panel.fit("children ~ sex"), *questions):
        assert BOUND in " ".join(each.notes)
    (record,) = panel.manifest.analyses
    assert BOUND in " ".join(record.notes)
    assert BOUND in record.file.uncertainty[0].statement
    (sums,) = (table for table in panel.record_of("sums").tables if table.name == "sums")
    assert BOUND in sums.uncertainty[0].statement
    page = (panel.path / REPORT).read_text()
    require_sound(page, panel.path)
    assert words(page).count(BOUND) >= 3  # the limits, the model and the moments
    assert words((panel.path / "README.md").read_text()).count(BOUND) >= 2


def test_records_and_implicates_warn_of_units_too(panel):
    (record,) = panel.manifest.synthesis
    readme = (panel.path / "README.md").read_text()
    assert "One unit may have 4 of the survey's records" in record.warning
    assert "rows_per_unit=4" in record.rules
    assert record.rules in readme
    metadata = pq.read_schema(panel.path / record.implicates.path).metadata
    assert metadata[b"dprelease.warning"].decode() == record.rules
    q, u = np.array([[1.0], [2.0]]), np.full((2, 1), 9.0)
    one, four = combine(q, u), combine(q, u, rows_per_unit=4)
    assert four.sampling_error == pytest.approx(2 * one.sampling_error)
    assert four.privacy_error == one.privacy_error
    with pytest.raises(ValueError, match="rows_per_unit"):
        combine(q, u, rows_per_unit=0)


def test_models_of_moments_and_their_tables_have_the_errors_of_units(panel):
    table = panel.table("sums")
    alone = np.flatnonzero((table["statistic"] == "mean") & np.ma.getmaskarray(table["other"]))
    mean, spread = (
        table["estimate"][i]
        for i in (alone[0], np.flatnonzero(table["statistic"] == "variance")[0])
    )
    rows = float(panel.plan.built["sums"].points(panel.draw("sums")).rows)
    assert table["sampling_error"][alone[0]] == pytest.approx((4 * spread / rows) ** 0.5, rel=0.02)
    found = panel.fit("children ~ 1").coefficients[0]
    assert found.estimate == pytest.approx(mean)
    assert found.sampling_error == pytest.approx(table["sampling_error"][alone[0]], rel=0.02)


@pytest.mark.slow
def test_a_plan_with_weights_says_that_models_do_not_use_them(plan_document, tmp_path):
    people = {"name": "people", "kind": "histogram", "columns": ["sex"], "weighted": True}
    bundle = published(plan_document, tmp_path, WEIGHTS, people)
    assert any("whatever its w:" in note for note in bundle.fit("income ~ children").notes)
    assert "whatever its w:" in words((bundle.path / REPORT).read_text())


def test_a_bundle_of_weighted_tables_says_why_it_answers_no_model(plan_document, tmp_path):
    pairs = next(r for r in plan_document["releases"] if r["name"] == "pairs") | {"weighted": True}
    plan_document |= {"releases": [pairs], "synthesis": [], "analyses": []} | WEIGHTS
    bundle = opened_once(tmp_path, plan_document)
    for ask in (
        lambda: bundle.fit("income ~ children"),
        lambda: quantile(bundle.evidence, "income", 0.5),
    ):
        with pytest.raises(InputError, match="its tables count weights, without sampling errors"):
            ask()


def test_nothing_has_sampling_errors_that_ignore_clusters(plan_document, tmp_path):
    """Only a measured model allows for the similarity of a cluster's records."""
    pay = {"name": "by-sex", "kind": "model", "formula": "income ~ sex"}
    design = {"cluster": "age", "strata": "region", "analyses": []}
    bundle = published(plan_document, tmp_path, design, pay)
    assert "clusters (age)" in " ".join(bundle.fit("income ~ sex").notes)
    for ask in (
        lambda: bundle.fit("income ~ children"),
        lambda: correlation(bundle.evidence, "income", "children"),
        lambda: independence(bundle.evidence, "sex", "children"),
        lambda: quantile(bundle.evidence, "income", 0.5),
        lambda: check_analyses(bundle.plan.changed(analyses=[Analysis.model_validate(MODEL)])),
    ):
        with pytest.raises((InputError, PlanError), match=r"states clusters \(age\)"):
            ask()
    (record,) = bundle.manifest.synthesis
    assert "unknown factor: people of a cluster (age) are similar" in record.warning
    assert "correct errors" not in record.warning
    plan_document["synthesis"][0]["implicates"] = 5
    with pytest.raises(PlanError, match="implicates: not available with a cluster"):
        load_plan(plan_document | design | {"source": "nowhere.parquet"})
    moments = {"name": "sums", "kind": "moments", "columns": ["children", "sex"]}
    plan_document |= {"releases": [pay, moments], "synthesis": []} | design
    with pytest.raises(PlanError, match="kind: moments take records as independent"):
        load_plan(plan_document)


def test_a_plan_with_strata_says_that_tables_do_not_use_them(plan_document, tmp_path):
    pay = {"name": "by-sex", "kind": "model", "formula": "income ~ sex"}
    bundle = published(plan_document, tmp_path, {"strata": "region", "analyses": []}, pay)
    assert any("strata (region) are not used" in n for n in bundle.fit("income ~ children").notes)
    assert not any("not used" in note for note in bundle.fit("income ~ sex").notes)
