"""What models say, as sentences: the term, or the two groups, that noise leaves no doubt of."""

import numpy as np
import pandas as pd
import pytest

import dprelease
from schemas.plan import load_plan
from tasks.bundle.verify import read_manifest
from tasks.report.analyses import _drawn
from tasks.report.findings import findings
from tasks.report.model_answers import Model, _model, _of_means, _of_terms
from tasks.report.terms import group_of, term_name
from tests.bare import leave_out_audits
from tests.shortest import document as shortest

REGION = {
    "type": "categorical",
    "categories": ["n", "s", "a:b"],
    "labels": {"n": "north"},
    "description": "Region",
}
PAY = {"type": "integer", "bounds": [0, 100], "description": "Weekly pay"}
CODE = {"type": "categorical", "categories": [1, 2], "labels": {"1": "low", "2": "high"}}
COUNT = {"name": "c", "kind": "histogram", "columns": ["region"], "mechanism": "discrete-laplace"}
RATE = {"type": "integer", "bounds": [1, 2], "labels": {1: "poor", 2: "good"}}
COLUMNS = {"region": REGION, "pay": PAY, "x": PAY, "code": CODE, "body mass": PAY, "age.1": PAY}
YEARS, SHARE = (
    {"type": "integer", "bounds": [0, 99], "unit": unit} for unit in ("years", "per cent")
)
COLUMNS |= {"rate": RATE, "years": YEARS, "share": SHARE}


@pytest.fixture(scope="module")
def columns():
    return load_plan(shortest(COLUMNS, [COUNT])).described_columns


def model(names, estimates, errors, family="gaussian", formula="pay ~ x") -> Model:
    numbers = {"estimate": np.array(estimates), "standard_error": np.array(errors)}
    return _model("Pay", formula, family, {"term": np.array(names), **numbers})


def test_the_clearest_term_is_told_and_never_the_constant(columns):
    found = model(["Intercept", "x", "C(region)[T.s]"], [900.0, 2.0, -30.0], [1.0, 0.5, 2.0])
    said = _of_terms(columns, found, 3.0)
    assert not said.leaves_open
    assert said.sentence == (
        "Pay: the mean of “Weekly pay” changes by -30.0 (-36.0 to -24.0) where “Region” is s"
        " instead of the reference, if the other terms are equal."
    )
    assert _of_terms(columns, found, 20.0).leaves_open
    large = model(["x"], [26_914.0], [100.0])
    assert "by 26,910 (26,610 to 27,210)" in _of_terms(columns, large, 3.0).sentence


def test_odds_are_multiplied(columns):
    found = model(["x"], [np.log(2)], [0.01], "binomial", "{pay > 5} ~ x")
    said = _of_terms(columns, found, 3.0).sentence
    assert "the odds of pay > 5 are multiplied by 2.00" in said
    small = model(["years"], [2e-5], [1e-6], "binomial", "{pay > 5} ~ years")
    said = _of_terms(columns, small, 3.0).sentence
    assert "multiplied by 1.0202 (1.0171 to 1.0233) for each 1,000 years" in said
    found = found._replace(formula="{code == 2} ~ x")
    said = _of_terms(columns, found, 3.0).sentence
    assert "the odds that “code” is high are multiplied by 2.00" in said


@pytest.mark.parametrize(
    ("formula", "family", "estimate", "says"),
    [
        (
            "log(pay + 10) ~ years",
            "gaussian",
            0.05,
            "“Weekly pay” (plus 10) is typically 5.1% (2.0% to 8.3%) higher for each year of “years”",
        ),
        (
            "{log(`body mass`)} ~ C(region)[T.s]",
            "gaussian",
            -0.5,
            "“Weekly pay” is typically 39.35% (37.50% to 41.14%) lower where “Region” is s instead of"
            " the reference",
        ),
        (
            "pay ~ log(years + 1)",
            "gaussian",
            100.0,
            "the mean of “Weekly pay” changes by 69.3147 (69.2939 to 69.3355) for each doubling of"
            " “years” (plus 1)",
        ),
        (
            "log(pay) ~ log(years)",
            "gaussian",
            -1.0,
            "“Weekly pay” is typically 50.00% (48.95% to 51.03%) lower for each doubling of “years”",
        ),
        (
            "pay ~ log(years)",
            "poisson",
            1.0,
            "the mean of “Weekly pay” is multiplied by 2.000 (1.959 to 2.042) for each doubling of"
            " “years”",
        ),
        (
            "exp(pay) ~ years",
            "gaussian",
            3.0,
            "the coefficient of “years, per year” is 3.000 (2.970 to 3.030)",
        ),
        (
            "log(pay / x) ~ years",
            "gaussian",
            3.0,
            "the coefficient of “years, per year” is 3.000 (2.970 to 3.030)",
        ),
        (
            "pay ~ exp(years)",
            "poisson",
            3.0,
            "the coefficient of “exp(years)” is 3.000 (2.970 to 3.030)",
        ),
        (
            "{log(pay) > 3} ~ years",
            "binomial",
            1.0,
            "the odds of log(pay) > 3 are multiplied by 2.718 (2.638 to 2.801) for each year of “years”",
        ),
    ],
)
def test_a_sentence_on_logarithms_is_in_percent_or_per_doubling(
    columns, formula, family, estimate, says
):
    found = model(
        [formula.partition(" ~ ")[2]], [estimate], [0.01], family, formula.replace("[T.s]", "")
    )
    assert _of_terms(columns, found, 3.0).sentence == f"Pay: {says}."


def test_of_groups_the_two_that_surely_differ_most_are_told(columns):
    names = ["C(region)[n]", "C(region)[s]", "C(region)[a:b]"]
    found = model(names, [10.0, 20.0, 90.0], [1.0, 1.0, 40.0])
    assert found.means
    assert _of_means(columns, found, 3.0).sentence == (
        "Pay: the mean is 20.0 (17.0 to 23.0) where “Region” is s, and 10.0 (7.0 to 13.0) where “Region”"
        " is north."
    )
    assert _of_means(columns, found, 6.0).leaves_open
    of_all = _of_means(columns, model(["Intercept"], [5.0], [1.0]), 2.0)
    assert of_all.sentence == "Pay: the mean is 5.0 (3.0 to 7.0)."


@pytest.mark.parametrize(
    ("response", "what"),
    [
        ("{region == 'n'}", "the share whose “Region” is north"),
        ("{code == 2}", "the share whose “code” is high"),
        ("{`body mass` > 3}", "the share with `body mass` > 3"),
        ("{pay + x}", "the mean"),
        ("log(pay + 1)", "the mean of log(Weekly pay + 1)"),
    ],
)
def test_of_a_share_the_answer_is_named(columns, response, what):
    found = model(["Intercept"], [0.5], [0.1], formula=f"{response} ~ 1")
    assert _of_means(columns, found, 2.0).sentence == f"Pay: {what} is 0.50 (0.30 to 0.70)."


@pytest.mark.parametrize(
    ("response", "numbers"),
    [
        ("{region == 'n'}", "at most 0.19"),
        ("{`body mass` > 3}", "at most 0.19"),
        ("pay", "at most 0.19"),
        ("{x * (pay > 3)}", "-0.01 (-0.21 to 0.19)"),
    ],
)
def test_no_interval_of_a_share_goes_below_zero(columns, response, numbers):
    found = model(["Intercept"], [-0.01], [0.1], formula=f"{response} ~ 1")
    assert f"is {numbers}." in _of_means(columns, found, 2.0).sentence


def test_a_group_that_alone_has_an_interval_is_named(columns):
    found = model(["C(region)[n]", "C(region)[s]"], [10.0, 20.0], [1.0, np.nan])
    assert _of_means(columns, found, 2.0).sentence.endswith("where “Region” is north.")


@pytest.mark.parametrize(
    ("names", "clearest"),
    [
        (["x", "C(region)[T.s]", "C(region)[T.a:b]"], "C(region)[T.a:b]"),
        (["x", "C(region)[T.s]", "x:C(region)[T.s]"], ""),
        (["x", "x * x"], ""),
        (["C(region)[T.s]", "C(code)[T.2.0]", "C(region)[T.s]:C(code)[T.2.0]"], ""),
        (["x:C(region)[n]", "x:C(region)[s]"], ""),
        (["body mass", "`body mass` * `body mass`"], ""),
        (["age_1", "log(age_1)"], ""),
        (["pay > 5", "C(region)[T.s]"], "pay > 5"),
        (["age_1", "x"], "age_1"),
    ],
)
def test_terms_whose_columns_are_in_other_terms_say_nothing_by_themselves(columns, names, clearest):
    """A slope beside an interaction is that of one group alone."""
    estimates = [9.0 if name == clearest else 5.0 for name in names]
    said = _of_terms(columns, model(names, estimates, [0.1] * len(names)), 3.0)
    assert (said is not None) is bool(clearest)
    if said:
        assert "changes by 9.00" in said.sentence


@pytest.mark.parametrize(
    ("term", "says"),
    [
        ("x", "for each unit of “Weekly pay”."),
        ("rate", "for each step of “rate”."),
        ("years", "for each year of “years”."),
        ("share", "for each percentage point of “share”."),
        ("pay > 5", "where pay > 5."),
        ("code", "for each step of the codes of “code”, which are numbers here."),
        ("C(code)[T.2.0]", "where “code” is high instead of low."),
    ],
)
def test_a_sentence_says_when_the_response_changes(columns, term, says):
    assert _of_terms(columns, model([term], [5.0], [0.1]), 3.0).sentence.endswith(says)


def test_log_odds_of_groups_are_compared_with_nothing():
    found = model(["C(region)[n]", "C(region)[s]"], [1.0, 2.0], [0.1, 0.1], "binomial")
    assert not found.means
    assert not found.terms


@pytest.mark.parametrize(
    ("term", "group"),
    [
        ("C(region)[T.n]", "“Region” is north"),
        ("region[T.s]:C(region)[T.a:b]", "“Region” is s and “Region” is a:b"),
        ("C(pay > 5)[T.True]", "C(pay > 5)[T.True]"),
    ],
)
def test_groups_have_their_names_and_labels(columns, term, group):
    assert group_of(columns, term) == group


@pytest.mark.parametrize(
    ("term", "name"),
    [
        ("Intercept", "Intercept"),
        ("C(region)[T.s]", "Region: s (compared with north)"),
        ("region[s]", "Region: s"),
        ("C(code)[T.2.0]", "code: high (compared with low)"),
        ("C(pay > 5)[T.True]", "C(pay > 5)[T.True]"),
        ("years", "years, per year"),
        ("x", "x"),
        ("log(pay + 1)", "log(Pay in a week + 1)"),
        ("`body mass` * `body mass`", "Mass * Mass"),
        ("region == 'pay'", "Region == 'pay'"),
        ("C(region)[T.a:b]:pay", "Region: a:b × Pay in a week"),
    ],
)
def test_coefficients_are_named_for_readers(columns, term, name):
    said = {"pay": "Pay in a week", "body mass": "Mass"}
    columns = {
        n: c.model_copy(update={"description": said.get(n, c.description)})
        for n, c in columns.items()
    }
    columns["x"] = columns["x"].model_copy(update={"description": ""})
    names = ["Intercept", "C(region)[T.s]", "C(region)[T.a:b]", "C(code)[T.2.0]", "C(code)[T.3.0]"]
    assert term_name(columns, names, term) == name


def test_a_page_names_coefficients_for_readers_and_their_file_for_machines(columns):
    numbers = ("estimate", "sampling_error", "privacy_error", "lower_95", "upper_95")
    found = {"term": np.array(["Intercept", "C(region)[T.s]", "C(region)[T.a:b]"])}
    found |= {name: np.arange(3.0) for name in numbers}
    (figure,) = _drawn(found, "pay ~ C(region)", "gaussian", "m.parquet", [], columns).figures
    names = ["Region: s (compared with north)", "Region: a:b (compared with north)"]
    assert [row[0] for row in figure.table.rows] == ["Intercept", *names]
    assert all(name in figure.picture for name in names)
    assert figure.table.header[-1] == "95% interval for this number alone"
    assert "each for one coefficient alone" in figure.says


@pytest.mark.slow
def test_models_that_are_measured_directly_answer_first_where_they_can(tmp_path, monkeypatch):
    random = np.random.default_rng(4)
    rows = pd.DataFrame({"region": random.choice(["n", "s", "a:b"], 5000)})
    rows["pay"] = np.where(rows.region == "n", 30, 60) + random.integers(0, 20, 5000)
    rows["luck"] = rows.groupby("region").cumcount() % 20  # the same in all regions
    releases = [
        {"name": name, "kind": "model", "formula": formula, "mechanism": "noisy-scores"}
        for name, formula in (
            ("luck", "luck ~ C(region)"),
            ("by-region", "pay ~ 0 + C(region)"),
            ("pay", "pay ~ C(region) + luck"),
        )
    ]
    leave_out_audits(monkeypatch.setattr)
    made = {"region": REGION, "pay": PAY, "luck": PAY | {"description": "Luck"}}
    plan = load_plan(shortest(made, releases, alpha="90", beta="1e-6", rows=5000))
    bundle = dprelease.release(plan, rows, release_id="r1", out=tmp_path, progress=False).path
    found = findings(plan, read_manifest(bundle), bundle)
    by_region, pay, luck = found.sentences
    assert by_region.startswith("By region: ")
    assert float(by_region.split()[5]) == pytest.approx(69.5, abs=3)
    assert "“Region” is north" in by_region
    assert pay.startswith("Pay: the mean of “Weekly pay” changes by ")
    assert float(pay.split()[8]) == pytest.approx(30, abs=3)
    assert luck.startswith("Luck: given sampling error and noise, no term")
    assert "for all 8 coefficients considered" in found.note
    assert "wider than the 95% intervals below, which are for single coefficients" in found.note
