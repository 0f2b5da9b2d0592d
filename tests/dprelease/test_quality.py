"""Records that are measured before they are published, and withheld if they are not good enough."""

import re

import numpy as np
import pandas as pd
import pytest

import dprelease
from tests.bare import leave_out_audits

ROWS = 2000


def document(limit: float, **own) -> dict:
    return {
        "dprelease": 1,
        "dataset": "office",
        "rows": ROWS,
        "privacy_unit": "row",
        "neighbours": "replace-one",
        "budget": {"granted": {"alpha": "8"}, "requested": {"alpha": "8"}},
        "columns": {
            "sex": {"type": "categorical", "categories": ["f", "m"]},
            "age": {"type": "integer", "bounds": [0, 79]},
            "works": {"type": "categorical", "categories": ["no", "yes"]},
        },
        "releases": [
            {
                "name": "pairs",
                "kind": "microdata-margins",
                "columns": ["sex", "age", "works"],
                "bins": {"age": [0, 20, 40, 60, 80]},
                "mechanism": "discrete-laplace",
            },
            {
                "name": "good-enough",
                "kind": "quality",
                "records": "people",
                "accept": [
                    {"distance": "pairs", "at_most": limit},
                    {"model": "works ~ age + sex", "at_most": 0.2},
                ],
                **own,
            },
        ],
        "synthesis": [{"name": "people", "from": "pairs", "rows": ROWS}],
        "publication": {"title": "An office", "replicates": 0},
    }


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(1)
    age = random.integers(80, size=ROWS)
    works = np.where((age > 19) & (random.random(ROWS) < 0.7), "yes", "no")
    return pd.DataFrame({"sex": random.choice(["f", "m"], ROWS), "age": age, "works": works})


def released(folder, table, plan: dict) -> dprelease.Bundle:
    with pytest.MonkeyPatch.context() as patch:
        leave_out_audits(patch.setattr)
        return dprelease.release(
            plan, table, ledger=folder / "ledger.sqlite", out=folder, progress=False
        )


@pytest.mark.slow
def test_good_records_are_published_with_what_was_measured(tmp_path, table):
    bundle = released(tmp_path, table, document(0.3))
    assert len(bundle.table("microdata/people")) == ROWS
    found = bundle.table("good-enough")
    assert found["met"].all()
    real = pd.crosstab(table["sex"], table["works"]).to_numpy() / ROWS
    records = bundle.table("microdata/people")
    made = pd.crosstab(records["sex"], records["works"]).to_numpy() / ROWS
    assert np.abs(real - made).sum() / 2 < 0.1
    assert 0 <= found["measured"][0] < 0.1
    assert "All criteria are met" in (bundle.path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_largest_error_and_means_in_groups_are_measured(tmp_path, table):
    accept = [
        {"largest": "pairs", "at_most": 0.1},
        {"means": "works ~ age + sex", "at_most": 0.2},
        {"means": "age ~ works", "at_most": 0.2},
    ]
    bundle = released(tmp_path, table, document(0.3, accept=accept))
    found = bundle.table("good-enough")
    assert found["met"].all()
    records = bundle.table("microdata/people")
    apart = [
        np.abs(real.reindex_like(made) - made).to_numpy().max()
        for one, other in (("sex", "works"),)
        for real, made in [
            [pd.crosstab(of[one], of[other], normalize=True) for of in (table, records)]
        ]
    ]
    assert found["measured"][0] > max(apart) - 0.02
    assert 0 <= found["measured"][2] < 0.1


@pytest.mark.slow
def test_other_records_are_withheld_and_cannot_be_drawn(tmp_path, table, monkeypatch):
    plan, said = document(0.02), list[str]()
    monkeypatch.setattr("tasks.admission.log_line", said.append)
    # The records have next to nothing of the budget, so that chance cannot make them good.
    plan["releases"][1]["weight"] = "5000"
    bundle = released(tmp_path, table, plan)
    assert any("people will hardly meet the limit 0.02" in line for line in said)
    assert not bundle.table("good-enough")["met"][0]
    assert not (bundle.path / "microdata").exists()
    assert not bundle.manifest["synthesis"]
    with pytest.raises(dprelease.InputError, match="has no synthetic table 'people'"):
        bundle.reader.sample("people", 10)
    assert "is withheld" in (bundle.path / "report.html").read_text(encoding="utf-8")
    assert "people`: The records are withheld" in (bundle.path / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_records_published_all_the_same_say_that_they_do_not_meet_the_criteria(tmp_path, table):
    plan = document(0.02, otherwise="publish")
    rule = {"if": {"works": ["yes"]}, "then": {"age": {"from": 20}}}
    plan["releases"][1]["accept"][1] = {"contradicts": rule, "at_most": 0.5}
    plan["releases"][1]["weight"] = "5000"
    bundle = released(tmp_path, table, plan)
    said = "The records do not meet all criteria of good-enough"
    assert said in (bundle.path / "README.md").read_text(encoding="utf-8")
    page = (bundle.path / "report.html").read_text(encoding="utf-8")
    section = page[page.index('id="synthetic-people"') :]
    assert said in section
    assert "contradictions of: if works is yes then age from 20" in page


def test_a_criterion_that_repeats_a_rule_of_the_records_is_refused():
    plan = document(0.3) | {"source": "x.csv"}
    rule = {"if": {"works": ["yes"]}, "then": {"age": {"from": 20}}}
    plan["releases"][0]["rules"] = [rule]
    plan["releases"][1]["accept"][1] = {"contradicts": rule, "at_most": 0.5}
    with pytest.raises(dprelease.PlanError, match=r"accept\[1\].contradicts: repeats one of"):
        dprelease.load_plan(plan)
    plan["releases"][0]["rules"] = [rule | {"then": {"age": {"from": 40}}}]
    dprelease.load_plan(plan)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"records": "peple"}, "records: the plan has no synthetic table 'peple'; did you mean"),
        (
            {"accept": [{"at_most": 0.1}]},
            "state one of distance, largest, contradicts, model, means, copies",
        ),
        ({"accept": [{"distance": ["sex", "agee"], "at_most": 0.1}]}, "no column 'agee'"),
        ({"accept": [{"distance": ["sex", "sex"], "at_most": 0.1}]}, "must be different columns"),
        ({"accept": [{"distance": [], "at_most": 0.1}]}, "accept[0]: distance: name at least one"),
        ({"accept": [{"model": "works ~ age * sex", "at_most": 0.1}]}, "columns that are added up"),
        ({"accept": [{"model": "works ~ C(sex)", "at_most": 0.1}]}, "without C()"),
        ({"accept": [{"largest": [], "at_most": 0.1}]}, "accept[0]: largest: name at least one"),
        ({"accept": [{"means": "works ~ age * sex", "at_most": 0.1}]}, "that are added up"),
        ({"accept": [{"model": "sex ~ code", "at_most": 0.1}]}, "no column 'code'"),
        ({"accept": [{"model": "works", "at_most": 0.1}]}, "write the response, ~ and the terms"),
        ({"accept": [{"contradicts": "age >= sex", "at_most": 0.1}]}, "contradicts"),
        ({"accept": [{"distance": "pairs", "at_most": 0.0001}]}, "noise alone"),
        ({"accept": [{"distance": "pairs", "at_most": 0}]}, "greater than 0"),
        (
            {
                "accept": [
                    {"distance": ["sex", "age"], "at_most": 0.1},
                    {"distance": ["age", "sex"], "at_most": 0.2},
                ]
            },
            "accept[1]: repeats accept[0]",
        ),
    ],
)
def test_criteria_that_cannot_be_measured_are_refused_with_the_plan(change, said):
    with pytest.raises(dprelease.PlanError, match=re.escape(said)):
        dprelease.load_plan(document(0.3, **change) | {"source": "x.csv"})
