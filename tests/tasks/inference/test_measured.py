"""Models that a plan measures: answered by their own release, published and drawn."""

import re
from dataclasses import replace

import numpy as np
import pytest

from dpcore.errors import InputError
from dpcore.releases.models.model import ModelFit
from schemas.plan import load_plan
from tasks.explain.analysis import expected_fit
from tasks.inference.measured import wider
from tests.tasks.made_up import opened
from tests.tasks.report.pages import page_of, part_of

MODEL = {"name": "pay", "kind": "model", "formula": "income ~ age + sex"}


def planned(document, **changes):
    document |= {"releases": [MODEL | changes], "synthesis": [], "analyses": []}
    return load_plan(document)


def test_the_model_that_was_asked_is_answered_by_its_release(plan_document, tmp_path):
    plan = planned(plan_document)
    bundle = opened(plan, tmp_path)
    found = bundle.fit("income ~ sex+age")
    assert [c.name for c in found.coefficients] == ["Intercept", "age", "sex[T.M]"]
    table = bundle.table("pay")
    for c, row in zip(found.coefficients, table["estimate"], strict=True):
        assert c.estimate == row
    covariance = bundle.table("pay.covariance")
    squares = (covariance["sampling"] + covariance["privacy"])[
        covariance["term"] == covariance["other"]
    ]
    assert np.allclose(np.sqrt(squares), table["standard_error"])
    with pytest.raises(
        InputError, match=r"only these models were: income ~ age \+ sex \(gaussian\)"
    ):
        bundle.fit("income ~ age")
    with pytest.raises(InputError, match="was not measured"):
        bundle.fit("income ~ age + sex", family="poisson")
    part = part_of(page_of(bundle.path), "release-pay")
    assert "sex: M (compared with F)" in part.words
    assert "95% interval, sampling and noise" in part.words


EVENT = {"name": "men", "formula": "{sex == 'M'} ~ age + income", "family": "binomial"}


def test_a_measured_model_is_found_by_whoever_asks_for_it_in_other_words(plan_document, tmp_path):
    bundle = opened(planned(plan_document, **EVENT), tmp_path)
    for asked, family in (
        ("{sex == 'M'} ~ income + age", None),
        ("{sex == 'M'} ~ age + income", "binomial"),
        ("sex ~ age + income", "logistic"),
        ("sex ~ age + income", None),
        ("logistic: sex ~ income + age", None),
    ):
        found = bundle.fit(asked, family)
        assert (found.formula, found.family) == (EVENT["formula"], "binomial")
    for asked, family in (
        ("{sex == 'M'} ~ age + income", "gaussian"),
        ("{sex == 'M'} ~ age", None),
        ("linear: sex ~ age + income", None),
        ("sex ~ age:income", None),
    ):
        with pytest.raises(InputError, match="was not measured"):
            bundle.fit(asked, family)


def test_a_measured_model_answers_in_other_terms(plan_document, tmp_path):
    """A mean for men is the sum of two measured coefficients, with the error of the sum."""
    bundle = opened(planned(plan_document), tmp_path)
    measured, covariance = bundle.fit("income ~ age + sex"), bundle.table("pay.covariance")
    found = bundle.fit("income ~ 0 + C(sex) + age")
    women, men = found["C(sex)[F]"], found["C(sex)[M]"]
    assert women.estimate == pytest.approx(measured["Intercept"].estimate)
    both = np.isin(covariance["term"], ["Intercept", "sex[T.M]"])
    both &= np.isin(covariance["other"], ["Intercept", "sex[T.M]"])
    parts = measured["Intercept"].estimate + measured["sex[T.M]"].estimate
    assert men.estimate == pytest.approx(parts)
    for part in ("sampling", "privacy"):
        # The table has one triangle or both.
        own = covariance[part][both & (covariance["term"] == covariance["other"])].sum()
        other = covariance[part][both & (covariance["term"] != covariance["other"])].mean()
        assert getattr(men, f"{part}_error") ** 2 == pytest.approx(own + 2 * other, rel=1e-6)
    assert found["age"].standard_error == pytest.approx(measured["age"].standard_error)
    squares = bundle.fit("income ~ age + {sex == 'M'}")
    assert squares.formula == "income ~ age + {sex == 'M'}"


@pytest.mark.parametrize(
    ("terms", "family", "constant"),
    [
        ("1", "gaussian", {"Intercept"}),
        ("age", "gaussian", {"Intercept"}),
        ("0 + C(region)", "gaussian", None),
        ("age + income", "binomial", set()),
        ("0 + C(region)", "binomial", set()),
    ],
)
def test_a_measured_event_answers_for_its_opposite(
    plan_document, tmp_path, terms, family, constant
):
    """A share becomes 1 - share, and the log-odds change their signs; the errors stay."""
    asked = {"formula": f"{{sex == 'M'}} ~ {terms}", "family": family}
    bundle = opened(planned(plan_document, **asked), tmp_path)
    measured = bundle.fit(asked["formula"]).coefficients
    for formula in (f"{{sex == 'F'}} ~ {terms}", f"{{sex != 'M'}} ~ {terms}"):
        found = bundle.fit(formula)
        assert (found.formula, found.family) == (formula, family)
        for of, own in zip(found.coefficients, measured, strict=True):
            one = constant is None or of.name in constant
            assert of.estimate == pytest.approx(one - own.estimate)
            assert of.standard_error == pytest.approx(own.standard_error)
    with pytest.raises(InputError, match="was not measured"):
        bundle.fit(f"{{sex == 'F'}} ~ {terms} + children")


def test_only_sums_with_a_hidden_term_have_no_error():
    fit = ModelFit(
        np.array([1.0, 2.0, 3.0]),
        np.diag([1.0, np.nan, 4.0]),
        np.diag([0.5, np.inf, 1.0]),
        np.array([False, True, False]),
    )
    found = fit.changed(np.array([[1.0, 0, 0], [0, 1, 1], [1, 0, 1]]))
    assert found.values.tolist() == [1, 5, 4]
    assert found.hidden.tolist() == [False, True, False]
    assert (found.sampling[2, 2], found.privacy[2, 2]) == (5.0, 1.5)


def test_a_column_of_two_categories_is_about_the_same_event_from_every_source(
    plan_document, tmp_path
):
    """Tables took the last category and a measured model 'yes': two models differed in their signs."""
    plan_document["columns"]["sex"]["categories"] = ["sex", "not"]
    tables = next(r for r in plan_document["releases"] if r["name"] == "pairs")
    measured = MODEL | {"formula": "{sex == 'sex'} ~ age", "family": "binomial"}
    plan_document |= {"releases": [measured, tables], "synthesis": [], "analyses": []}
    bundle = opened(load_plan(plan_document), tmp_path)
    assert bundle.fit("sex ~ age").formula == measured["formula"]
    for family in (None, "logistic", "binomial"):
        found = bundle.fit("sex ~ children", family)
        assert (found.formula, found.family) == ("{sex == 'sex'} ~ children", "binomial")


@pytest.mark.slow
def test_another_model_says_how_much_wider_it_is_for_not_being_asked(plan_document, tmp_path):
    tables = next(r for r in plan_document["releases"] if r["name"] == "pairs")
    plan_document["releases"] = [MODEL, tables | {"weight": 1}]
    plan_document |= {"synthesis": [], "analyses": []}
    plan = load_plan(plan_document)
    bundle = opened(plan, tmp_path)
    assert not any("measured directly" in n for n in bundle.fit(MODEL["formula"]).notes)
    other = bundle.fit("income ~ children")
    (note,) = (n for n in other.notes if "was not measured directly" in n)
    here, direct = map(float, re.findall(r"[\d.]+(?= times as)", note))
    assert "as wide as with its estimated sampling errors alone" in note
    slope = other["children"]
    assert here == pytest.approx(slope.standard_error / slope.sampling_error, rel=0.05)
    document = plan.model_dump(mode="json", by_alias=True)
    document["releases"][0]["formula"] = "income ~ children"
    asked = load_plan(document)
    assert asked.built["pay"].share == plan.built[tables["name"]].share
    assert direct == pytest.approx(asked.built["pay"].width_ratio, rel=0.05)
    exact = replace(other, coefficients=(replace(slope, privacy_error=0.0),))
    (said,) = wider(plan, tables["name"], exact)
    assert said.endswith("would not have made the intervals narrower")


def test_what_is_expected_is_known_before_a_draw(plan_document):
    plan = planned(plan_document)
    name, found = expected_fit(plan, "income ~ age + sex", "gaussian")
    ratio = plan.built["pay"].width_ratio
    assert name == "pay"
    for each in found.coefficients:
        # The ratio is that of a large sample; of 400 records noise hides more.
        assert 0.8 < each.standard_error / each.sampling_error / ratio < 2


@pytest.mark.slow
def test_the_design_of_the_survey_is_named_wherever_the_model_is(plan_document, tmp_path):
    plan_document["privacy_unit"] = {"column": "home", "max_rows": 3, "name": "household"}
    plan_document["weights"] = {"column": "w", "largest": 100, "step": "0.1", "total": 8000}
    plan_document |= {"strata": "region", "cluster": "age"}
    plan = planned(plan_document)
    assert plan.built["pay"].adjacency.most == 1
    said = (
        "the population that the weights (w) describe",
        "clusters (age) are drawn independently within strata (region)",
    )
    bundle = opened(plan, tmp_path)
    notes = " ".join(bundle.fit("income ~ age + sex").notes)
    (record,) = bundle.record_of("pay").tables[:1]
    stated = record.uncertainty[0].statement
    assert all(each in notes and each in stated for each in said)
    facts = bundle.record_of("pay").facts
    assert "records" not in facts
    page_of(bundle.path)
    _, expected = expected_fit(plan, "income ~ age + sex", "gaussian")
    assert all(np.isfinite(each.estimate) for each in expected.coefficients)
