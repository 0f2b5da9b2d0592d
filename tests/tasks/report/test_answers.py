"""What models say, as sentences: the term, or the two groups, that noise leaves no doubt of."""

import numpy as np
import pandas as pd
import pytest

import dprelease
from schemas.plan import load_plan
from tasks.bundle.verify import read_manifest
from tasks.report.answers import (
    OPEN,
    Group,
    Model,
    _group,
    _model,
    _of_means,
    _of_terms,
    _told_apart,
    answers,
)
from tasks.report.findings import findings
from tests.bare import leave_out_audits
from tests.shortest import document as shortest

REGION = {
    "type": "categorical",
    "categories": ["n", "s", "w"],
    "labels": {"n": "north"},
    "description": "Region",
}
PAY = {"type": "integer", "bounds": [0, 100], "description": "Weekly pay"}
CODE = {"type": "categorical", "categories": [1, 2], "labels": {"1": "low", "2": "high"}}
COUNT = {"name": "c", "kind": "histogram", "columns": ["region"], "mechanism": "discrete-laplace"}


@pytest.fixture
def plan():
    return load_plan(shortest({"region": REGION, "pay": PAY}, [COUNT]))


def model(names, estimates, errors, family="gaussian", formula="pay ~ x") -> Model:
    half = 1.959964 * np.array(errors)
    ends = {"lower_95": np.array(estimates) - half, "upper_95": np.array(estimates) + half}
    found = {"term": np.array(names), "estimate": np.array(estimates), **ends}
    return _model("Pay", formula, family, found)


def test_the_clearest_term_is_told_and_never_the_constant(plan):
    found = model(["Intercept", "x", "C(region)[T.s]"], [900.0, 2.0, -30.0], [1.0, 0.5, 2.0])
    said = _of_terms(plan, found, 3.0)
    assert said == (
        "Pay: the mean of “Weekly pay” changes by -30.0 (-36.0 to -24.0) where it is “Region”: s, not"
        " the reference, among records that are alike in the model's other terms."
    )
    assert OPEN in _of_terms(plan, found, 20.0)


def test_odds_are_multiplied(plan):
    found = model(["x"], [np.log(2)], [0.01], "binomial", "{pay > 5} ~ x")
    assert "the odds of pay > 5 are multiplied by 2.00" in _of_terms(plan, found, 3.0)


def test_of_groups_the_two_that_surely_differ_most_are_told(plan):
    names = ["C(region)[n]", "C(region)[s]", "C(region)[w]"]
    found = model(names, [10.0, 20.0, 90.0], [1.0, 1.0, 40.0])
    assert found.means
    assert _of_means(plan, found, 3.0) == (
        "Pay: 20.0 (17.0 to 23.0) where it is “Region”: s, and 10.0 (7.0 to 13.0) where it is “Region”:"
        " n: north."
    )
    assert OPEN in _of_means(plan, found, 6.0)
    assert _of_means(plan, model(["Intercept"], [5.0], [1.0]), 2.0) == "Pay: 5.0 (3.0 to 7.0)."


def test_groups_whose_intervals_meet_are_not_told_apart():
    one, other = Group("one", 5.0, 4.0, 6.0, 0.5), Group("other", 3.0, 2.0, 4.0, 0.5)
    assert _told_apart("Pay", [one, other], "open") == "Pay: open."
    less = other._replace(high=3.9)
    assert _told_apart("Pay", [less, one], "open").startswith(
        "Pay: 5.00 (4.00 to 6.00) where it is one"
    )


def test_a_group_that_alone_has_an_interval_is_named(plan):
    found = model(["C(region)[n]", "C(region)[s]"], [10.0, 20.0], [1.0, np.nan])
    assert _of_means(plan, found, 2.0).endswith("where it is “Region”: n: north.")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["x", "C(region)[T.s]", "C(region)[T.w]"], "C(region)[T.s]"),
        (["x", "C(region)[T.s]", "x:C(region)[T.s]"], ""),
        (["x", "x * x"], ""),
        (["C(region)[T.s]", "C(code)[T.2.0]", "C(region)[T.s]:C(code)[T.2.0]"], ""),
        (["x:C(region)[n]", "x:C(region)[s]"], ""),
        (["pay > 5", "C(region)[T.s]"], "pay > 5"),
    ],
)
def test_terms_whose_columns_are_in_other_terms_say_nothing_by_themselves(names, told):
    """A slope beside an interaction is that of one group alone."""
    columns = {"region": REGION, "pay": PAY, "x": PAY, "code": CODE}
    plan = load_plan(shortest(columns, [COUNT]))
    estimates = [9.0 if name == told else 5.0 for name in names]
    said = _of_terms(plan, model(names, estimates, [0.1] * len(names)), 3.0)
    assert (said is not None) is bool(told)
    if told:
        assert "changes by 9.00" in said
        assert (f"where {told}" in said) is ("[" not in told)


def test_codes_have_labels_and_their_steps_are_called_steps():
    plan = load_plan(shortest({"region": REGION, "pay": PAY, "code": CODE}, [COUNT]))
    said = _of_terms(plan, model(["C(code)[T.2.0]"], [5.0], [0.1]), 3.0)
    assert "where it is “code”: 2: high, not 1: low" in said
    said = _of_terms(plan, model(["code"], [5.0], [0.1]), 3.0)
    assert "for each step of the codes of “code”, which count as numbers here" in said


def test_log_odds_of_groups_are_compared_with_nothing(plan):
    found = model(["C(region)[n]", "C(region)[s]"], [1.0, 2.0], [0.1, 0.1], "binomial")
    assert not found.means
    assert not found.terms


def test_groups_have_their_names_and_labels(plan):
    assert _group(plan, "C(region)[T.n]") == "“Region”: n: north"
    assert _group(plan, "region[T.s]:C(region)[T.w]") == "“Region”: s and “Region”: w"
    assert _group(plan, "C(pay > 5)[T.True]") == "C(pay > 5)[T.True]"


def test_models_that_are_measured_directly_answer_first_where_they_can(tmp_path, monkeypatch):
    random = np.random.default_rng(4)
    rows = pd.DataFrame({"region": random.choice(["n", "s", "w"], 5000)})
    rows["pay"] = np.where(rows.region == "n", 30, 60) + random.integers(0, 20, 5000)
    rows["luck"] = rows.groupby("region").cumcount() % 20  # the same in all regions
    columns = {"region": REGION, "pay": PAY, "luck": PAY | {"description": "Luck"}}
    releases = [
        {"name": name, "kind": "model", "formula": formula, "mechanism": "noisy-scores"}
        for name, formula in (
            ("luck", "luck ~ C(region)"),
            ("by-region", "pay ~ 0 + C(region)"),
            ("pay", "pay ~ C(region) + luck"),
        )
    ]
    leave_out_audits(monkeypatch.setattr)
    plan = load_plan(shortest(columns, releases, alpha="90", beta="1e-6", rows=5000))
    bundle = dprelease.release(plan, rows, release_id="r1", out=tmp_path, progress=False).path
    said, number = answers(plan, read_manifest(bundle), bundle, 0.05)
    assert number == 2 + 3 + 3
    assert first_number(said[0], "By region: ") == pytest.approx(69.5, abs=3)
    assert "“Region”: n: north" in said[0]
    change = first_number(said[1], "Pay: the mean of “Weekly pay” changes by ")
    assert change == pytest.approx(30, abs=3)
    assert said[2].startswith("Luck: ")


def test_means_are_told_where_noise_leaves_no_doubt(tmp_path, monkeypatch):
    random = np.random.default_rng(5)
    rows = pd.DataFrame({"region": random.choice(["n", "s", "w"], 5000)})
    rows["pay"] = np.where(rows.region == "n", 30, 60) + random.integers(0, 20, 5000)
    rows["luck"] = random.integers(0, 20, 5000)
    columns = {"region": REGION, "pay": PAY, "luck": PAY | {"description": "Luck"}}
    releases = [
        {"name": name, "kind": "mean", "column": column, "mechanism": "discrete-laplace"} | by
        for name, column, by in (
            ("pay-by-region", "pay", {"by": "region"}),
            ("luck-by-region", "luck", {"by": "region"}),
            ("all-pay", "pay", {}),
        )
    ]
    leave_out_audits(monkeypatch.setattr)
    plan = load_plan(shortest(columns, releases, alpha="9", rows=5000))
    bundle = dprelease.release(plan, rows, release_id="r1", out=tmp_path, progress=False).path
    found = findings(plan, read_manifest(bundle), bundle)
    told = {each.partition(":")[0]: each for each in (*found.sentences, *found.more)}
    by_region, of_all = told["Pay by region"], told["All pay"]
    assert first_number(by_region, "Pay by region: ") == pytest.approx(69.5, abs=3)
    assert by_region.count("where it is “Region”: ") == 2
    assert by_region.endswith("“Region”: n: north.")
    assert "Luck by region" in told
    assert first_number(of_all, "All pay: ") == pytest.approx(rows.pay.mean(), abs=3)
    assert "all intervals of means here are right at once, although they were chosen" in found.note
    assert "by rule from 7 means" in found.note


def first_number(sentence: str, opening: str) -> float:
    assert sentence.startswith(opening)
    return float(sentence.removeprefix(opening).split()[0])
