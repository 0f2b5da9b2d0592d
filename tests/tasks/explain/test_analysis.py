"""What a plan says of a model before anything is drawn."""

import json

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.tally import Tally
from dpcore.errors import InputError
from dpcore.estimates.evidence import Evidence
from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from flows.cli import main
from schemas.plan import load_plan
from tasks.explain.analysis import (
    RELATED,
    _made_up,
    analysis_dict,
    analysis_text,
    expected_fit,
)
from tasks.explain.explain import explain
from tasks.inference.fit import fit
from tests.conftest import write_plan


@pytest.fixture
def plan(plan_document):
    return load_plan(plan_document)


@pytest.mark.slow
def test_expected_errors_are_those_of_a_draw_from_such_a_survey(plan_document):
    plan = load_plan(plan_document | {"rows": 100_000})
    name, expected = expected_fit(plan, "income ~ sex + children", "gaussian")
    release = plan.built[name]
    assert name == "pairs"
    codes, columns = _made_up(plan, release.domain, plan.rows)
    cells, counts = np.unique(release.domain.pack(codes), return_counts=True)
    exact = release.statistic(Tally(release.domain, cells, counts))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(1))
    drawn = Evidence(release.domain, release.agreement(noisy), plan.rows, codes, columns)
    found = fit(drawn, "income ~ sex + children")
    for before, after in zip(expected.coefficients, found.coefficients, strict=True):
        assert before.sampling_error == pytest.approx(after.sampling_error, rel=0.5)
        # Tables of other releases help too, so what is expected may be less.
        assert 0.3 < before.privacy_error / RELATED / after.privacy_error < 1.5


def test_the_text_names_the_release_and_the_parts_of_the_error(plan):
    text = analysis_text(plan, "income ~ sex + children", "gaussian")
    assert "from pairs: supported" in text
    assert "sampling    privacy   together" in text


def test_the_text_promises_less_of_tables_than_of_a_measured_model(plan_document):
    formula = "income ~ sex + children"
    text = analysis_text(load_plan(plan_document), formula, "gaussian")
    assert "within a factor of three" in text
    release = {"name": "pay", "kind": "model", "formula": formula, "mechanism": "noisy-scores"}
    plan_document |= {"releases": [release], "synthesis": [], "analyses": []}
    plan_document["budget"]["requested"] = {"alpha": "2", "beta": "5e-7"}
    text = analysis_text(load_plan(plan_document), formula, "gaussian")
    assert "within a factor of two" in text


def test_what_the_plan_does_not_measure_is_named(plan):
    with pytest.raises(InputError, match=r"also: \[\[sex, children, income\]\]"):
        analysis_text(plan, "income ~ sex * children", "gaussian")


@pytest.mark.slow
def test_models_of_the_plan_are_part_of_what_it_is_explained_by(plan_document):
    asked = {"name": "pay", "title": "What pay depends on", "formula": "income ~ sex"}
    plan_document["analyses"] = [asked]
    text = explain(load_plan(plan_document), None, Budget())
    assert "What pay depends on (analysis pay)\nincome ~ sex   (gaussian), from pairs" in text


def test_the_command_says_the_same_as_json(plan_document, tmp_path, capsys, plan):
    path = str(write_plan(tmp_path, plan_document))
    assert main(["explain", path, "--analysis", "income ~ sex", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == analysis_dict(plan, "income ~ sex", "gaussian")
    assert [row["term"] for row in found["expected"]] == ["Intercept", "sex[T.M]"]
    assert all(row["standard_error"] > row["privacy_error"] > 0 for row in found["expected"])
    assert main(["explain", path, "--analysis", "income ~ sex * children", "--json"]) == 2
    printed = capsys.readouterr()
    refused = json.loads(printed.out)
    assert (refused["supported"], refused["also"]) == (False, [["sex", "children", "income"]])
    assert refused["reason"] in printed.err


def test_texts_whose_categories_noise_merges_answer_no_model(plan_document):
    """Groups of categories have numbers for names, which no text is."""
    release = {"name": "pairs", "kind": "microdata-margins", "columns": ["sex", "region", "age"]}
    plan_document |= {
        "releases": [release | {"compress": {"keep": 4}, "mechanism": "discrete-gaussian"}],
        "synthesis": [],
    }
    plan_document["budget"]["requested"] = {"alpha": "2", "beta": "5e-7"}
    plan = load_plan(plan_document)
    with pytest.raises(InputError, match="region: `compress` merged categories"):
        expected_fit(plan, "age ~ sex + region", "gaussian")
