"""An explanation opens with what a statistician asks: is it good, and what alpha would make it so?"""

import math
import re
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.advice.cell_noise import cell_variances
from dpcore.advice.usable import GOOD, ROUGH, read_axes, relative_error, verdict
from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.releases.tables.microdata import Microdata
from schemas.plan import Plan, load_plan
from schemas.survey.supposed import supposed_shares
from tasks.explain.analysis import analysis_text, expected_fit, largest_ratio
from tasks.explain.explain import error_rows, explain, explanation
from tasks.explain.verdicts import MOST_LINES, Verdict, verdict_text, verdicts
from tests.shortest import document as shortest
from tests.shortest import from_yaml
from tests.tasks.made_up import opened


def plan_of(plan_path, alpha: str, rows: int = 6366):
    wanted = {"budget.granted.alpha": alpha, "budget.requested.alpha": alpha, "rows": rows}
    return load_plan(plan_path, wanted)


@pytest.mark.slow
def test_more_alpha_and_more_records_never_make_it_worse(plan_path):
    order = ["not usable", "rough", "good"]
    seen = []
    for alpha, rows in (("1/100", 6366), ("1", 6366), ("1", 60_000), ("20", 60_000)):
        seen.append([order.index(each.says) for each in verdicts(plan_of(plan_path, alpha, rows))])
    for before, after in pairwise(seen):
        assert all(a <= b for a, b in zip(before, after, strict=True))
    assert 0 in seen[0]
    assert set(seen[-1]) == {2}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("composition", "unit"),
    [("basic", "alpha"), ("concentrated", "alpha"), ("concentrated", "rho")],
)
def test_the_amount_that_is_named_makes_it_good_and_the_step_below_does_not(
    plan_document, composition, unit
):
    """In the words of the plan: a request of alpha is answered in alpha, however it is spent."""
    granted = {"alpha": "50", "beta": "1e-6"}

    def asking(amount: Fraction) -> Plan:
        requested = {unit: str(amount), "beta": "1e-7"}
        budget = {"composition": composition, "granted": granted, "requested": requested}
        return load_plan(plan_document | {"budget": budget})

    plan = asking(Fraction(1, 100))
    (named,) = {
        word for line in verdict_text(plan) for word in ("alpha", "rho") if f"{word} " in line
    }
    assert named == unit
    releases = [each for each in verdicts(plan) if each.enough and each.name in plan.built]
    assert releases
    for each in releases:
        said = [
            {found.name: found.says for found in verdicts(asking(each.enough * part))}[each.name]
            for part in (1, Fraction(3, 4))
        ]
        assert said[0] == each.aim != said[1]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (2, "rough from alpha 20 on, not good at any alpha up to 20: try coarser bins"),
        (200, "good from alpha 6 on, or try coarser bins"),
        (6366, "good from alpha 0.25 on."),
    ],
)
def test_where_much_budget_would_be_needed_another_way_is_named(plan_document, rows, says):
    few = {"rows": rows, "releases": plan_document["releases"][:1], "synthesis": []}
    budget = {"granted": {"alpha": "9"}, "requested": {"alpha": "1/10"}}
    (line,) = verdict_text(load_plan(plan_document | few | {"budget": budget}))
    assert says in line
    assert line.count("try") == says.count("try")


@pytest.mark.slow
def test_an_explanation_opens_with_few_lines(plan_path):
    plan = plan_of(plan_path, "1")
    lines = verdict_text(plan)
    assert 1 <= len(lines) <= MOST_LINES
    text = explain(plan, None, Budget()).splitlines()
    assert text[3 : 3 + len(lines)] == lines
    facts = explanation(plan, None, Budget())["verdicts"]
    assert {each["verdict"] for each in facts} <= {"good", "rough", "not usable"}
    assert [each["name"] for each in facts] == [each.name for each in verdicts(plan)]


@pytest.mark.slow
def test_many_releases_are_listed_by_verdict_with_the_grades_of_their_tables():
    columns = {
        name: {"type": "categorical", "categories": [*"abcdefghijkl"[:size]]}
        for name, size in (("p", 12), ("q", 12), ("r", 2), ("s", 2))
    }
    records = {"name": "all", "kind": "microdata-margins", "mechanism": "discrete-laplace"}
    records["columns"] = [*columns]
    tables = [{"name": f"t{i}", "kind": "histogram", "columns": ["r"]} for i in range(MOST_LINES)]
    lines = verdict_text(load_plan(shortest(columns, [records, *tables], alpha="4", rows=2000)))
    (line,) = (line for line in lines if "all" in line)
    shares = re.search(r"\ball \(tables (\d+)% accurate, (\d+)% (?:rough|noise)[,;)]", line)
    assert shares
    assert all(0 < int(each) < 100 for each in shares.groups())


@pytest.mark.parametrize("error", [0.01, GOOD, 0.2, ROUGH, 3.0])
def test_a_table_is_good_where_noise_moves_few_records(error):
    says = "good" if error <= 0.05 else "rough" if error <= 0.25 else "not usable"
    assert verdict(error) == says


@pytest.mark.parametrize("alpha", ["1/100", "1/10", "1"])
def test_records_are_no_better_than_their_single_columns_as_measured(alpha):
    """A model of all tables makes pairs more accurate, but has nothing to go by in noise."""
    domain = Domain(tuple(Bins(name, tuple(map(float, range(13)))) for name in "abc"))
    release = Microdata("m", domain, 500, Budget.of(alpha), tuple(combinations(range(3), 2)))
    stddev = cell_variances(release)((0,)) ** 0.5
    alone = 12 * stddev * math.sqrt(2 / math.pi) / (2 * 500)
    assert relative_error(release) >= alone * (1 - 1e-9)
    if alone > ROUGH:
        assert verdict(relative_error(release)) == "not usable"
    assert (alone > ROUGH) == (alpha != "1")


@pytest.mark.slow
def test_what_is_said_before_the_charge_is_how_the_bundle_grades_the_tables(tmp_path):
    """All on one scale: two releases of records, one of them of nothing but noise."""
    columns = {
        name: {"type": "categorical", "categories": [*"abcdefghijkl"[:size]]}
        for name, size in (("p", 12), ("q", 12), ("r", 2), ("s", 2))
    }
    names = {"all": ["p", "q"], "few": ["r", "s"]}
    releases = [
        {"name": name, "kind": "microdata-margins", "columns": of, "mechanism": "discrete-laplace"}
        for name, of in names.items()
    ]
    drawn = [{"name": f"{name}-records", "from": name, "rows": 1000} for name in names]
    plan = load_plan(shortest(columns, releases, alpha="1", rows=1000, synthesis=drawn))
    said, bundle = {each.name: each.says for each in verdicts(plan)}, opened(plan, tmp_path)
    assert said == {"all": "not usable", "few": "good"}
    stated = {each["release"]: each for each in error_rows(plan) if "L1" in each["quantity"]}
    for name in names:
        support = bundle.table(f"microdata/{name}-records.support")
        (pair,) = np.flatnonzero(support["ways"] == 2)
        assert support["grade"][pair] == {"good": "accurate", "not usable": "noise"}[said[name]]
        share = re.search(r"([\d.]+)% of the records into wrong cells", stated[name]["note"])
        expected = min(support["expected_distance"][pair], 1.0)  # more than all would be misread
        assert float(share[1]) / 100 == pytest.approx(expected, abs=1e-3)


MEANS = """
rows: 1500
neighbours: add-remove
alpha: "1"
columns:
  view: {type: integer, bounds: [1, 11]}
  visits: {type: integer, bounds: [0, 365]}
  vote: {type: categorical, categories: [a, b, c]}
releases:
  - {name: views, kind: mean, column: view, by: vote}
  - {name: calls, kind: mean, column: visits, by: vote}
"""


def test_a_mean_is_judged_by_how_such_a_column_usually_lies_between_its_bounds():
    """Views of 1 to 11 fill their bounds; visits of at most 365 lie near zero, where noise is larger."""
    plan = Plan.model_validate(from_yaml(MEANS))
    views, calls = verdicts(plan)
    columns = {"views": 3.2, "calls": 7.0}  # usual standard deviations of surveys
    stated = {name: built.expected_error() for name, built in plan.built.items()}
    assert relative(views) == pytest.approx(stated["views"][0].value / columns["views"], rel=0.5)
    assert relative(calls) > stated["calls"][0].value / 18
    assert (views.says, calls.says) == ("good", "not usable")


def relative(found: Verdict) -> float:
    return float(re.search(r"is ([\d.]+)% of", found.words)[1]) / 100


@pytest.mark.slow
def test_a_series_has_a_verdict_too():
    series = {"period": "month", "periods": 4, "in_periods": 1}
    columns = {
        "month": {"type": "integer", "bounds": [1, 4]},
        "age": {"type": "integer", "bounds": [0, 99]},
    }
    releases = [
        {"name": "ages", "kind": "histogram", "columns": ["age"]},
        {"name": "old", "kind": "model", "formula": "age ~ 1", "mechanism": "noisy-scores"},
    ]

    def said(alpha: str) -> list[str]:
        stated = shortest(
            columns, releases, alpha=alpha, beta="1e-6", neighbours="add-remove", series=series
        )
        return [each.says for each in verdicts(Plan.model_validate(stated | {"rows": 5000}))]

    assert said("8") == ["good", "good"]
    assert said("1/100") == ["not usable", "not usable"]


def test_counts_that_only_place_records_inside_bins_have_no_verdict():
    columns = {
        "age": {"type": "integer", "bounds": [0, 99]},
        "sex": {"type": "categorical", "categories": ["F", "M"]},
    }
    pairs = {"name": "p", "kind": "microdata-margins", "columns": ["age", "sex"]}
    years = {"name": "years", "kind": "margins", "columns": ["age"], "ways": 1}
    releases = [pairs | {"bins": {"age": [0, 50, 100]}}, years]

    def named(within: dict) -> list[str]:
        synthesis = [{"name": "r", "from": "p", "rows": 100, "within_bins": within}]
        stated = shortest(columns, releases, synthesis=synthesis, beta="1e-6")
        return [each.name for each in verdicts(Plan.model_validate(stated))]

    assert named({}) == ["p", "years"]
    assert named({"age": "years"}) == ["p"]


HIDDEN = """
rows: 9000
neighbours: replace-one
alpha: "4/10"
beta: "1e-6"
columns:
  kids: {type: integer, bounds: [0, 8]}
  age: {type: integer, bounds: [18, 89], unit: years}
  school: {type: integer, bounds: [0, 20], unit: years}
  siblings: {type: integer, bounds: [0, 300], unit: persons}
releases:
  - {name: m, kind: model, formula: kids ~ age + school + siblings, mechanism: noisy-scores}
"""


def test_a_model_of_which_noise_hides_a_term_is_rough_and_names_it():
    """The release gives the other terms their intervals, and this one none."""
    (said,) = verdicts(Plan.model_validate(from_yaml(HIDDEN)))
    assert said.says == "rough"
    assert said.words.endswith("; noise hides siblings")
    without = HIDDEN.replace("+ siblings", "").replace("siblings", "unused")
    (all_known,) = verdicts(Plan.model_validate(from_yaml(without)))
    assert "hides" not in all_known.words
    (most,) = verdicts(Plan.model_validate(from_yaml(HIDDEN, alpha="1/40")))
    assert (most.says, most.words) == ("not usable", "noise hides most of the coefficients")


WIDE = """
rows: 9000
neighbours: replace-one
alpha: "1"
beta: "1e-6"
columns:
  wealth: {type: integer, bounds: [0, 1000000000]}
  income: {type: integer, bounds: [0, 1000000000]}
  sex: {type: categorical, categories: [f, m]}
releases:
  - {name: model, kind: model, formula: income ~ wealth + sex, mechanism: noisy-scores}
  - {name: mean, kind: mean, column: wealth, by: sex}
  - {name: moments, kind: moments, columns: [wealth, income]}
"""


def test_a_column_of_a_billion_values_is_judged_within_memory():
    found = {each.name: each for each in verdicts(Plan.model_validate(from_yaml(WIDE)))}
    assert found.keys() == {"model", "mean", "moments"}
    narrow = WIDE.replace("1000000000", "100000")
    for each in verdicts(Plan.model_validate(from_yaml(narrow))):
        assert found[each.name].says == each.says


def test_a_model_has_the_same_errors_in_its_verdict_and_in_its_table(plan_document):
    asked = {"name": "pay", "title": "Pay", "formula": "income ~ sex + children"}
    plan = load_plan(plan_document | {"analyses": [asked]})
    (said,) = (each for each in verdicts(plan) if each.name == "pay")
    lines = analysis_text(plan, asked["formula"], "gaussian").splitlines()
    ratios = [line.split()[-1] for line in lines if line.startswith(("sex", "children"))]
    assert said.words.startswith(f"privacy errors up to {max(ratios, key=float)} times")


CLUSTERS = """
rows: 7000
neighbours: add-remove
alpha: "1"
beta: "1e-6"
columns:
  place: {type: integer, bounds: [0, 159]}
  pay: {type: continuous, bounds: [0, 6000]}
  age: {type: integer, bounds: [18, 79]}
releases:
  - {name: m, kind: model, formula: pay ~ age, mechanism: noisy-scores}
"""


@pytest.mark.slow
def test_what_noise_hides_of_clusters_is_expected():
    alone = Plan.model_validate(from_yaml(CLUSTERS))
    drawn = Plan.model_validate(from_yaml(CLUSTERS, cluster="place"))
    (of_alone,), (of_clusters,) = (
        [float(re.search(r"up to ([\d.]+) times", each.words)[1]) for each in verdicts(plan)]
        for plan in (alone, drawn)
    )
    assert of_alone < 1.6
    assert of_clusters > 1.2 * of_alone


GROUPS = """
rows: 2231
neighbours: replace-one
alpha: "0.6"
beta: "1e-6"
columns:
  agree: {type: categorical, categories: ['no', 'yes']}
  importance: {type: categorical, categories: [not, little, some, very]}
releases:
  - {name: m, kind: model, formula: "{agree == 'yes'} ~ 0 + C(importance)", mechanism: noisy-scores}
"""


def test_if_noise_hides_half_of_the_groups_the_others_have_their_intervals():
    """The two groups that are taken for the rarest are hidden, and the others are not."""
    (said,) = verdicts(Plan.model_validate(from_yaml(GROUPS)))
    assert said.says == "rough"
    assert said.words.startswith("95% intervals are usually 1.")
    (most,) = verdicts(Plan.model_validate(from_yaml(GROUPS, alpha="1/10")))
    assert (most.says, most.words) == ("not usable", "noise hides most of the means of groups")


@pytest.mark.slow
def test_units_of_several_records_are_judged_by_the_terms_of_their_model():
    unit = {"column": "person", "max_rows": 15}
    plan = Plan.model_validate(from_yaml(CLUSTERS, privacy_unit=unit, alpha="4"))
    built = plan.built["m"]
    assert "age" not in built.domain.names
    error = relative_error(built, supposed_shares(plan.columns, read_axes(built)))
    _, expected = expected_fit(plan, "pay ~ age", "gaussian")
    assert error / GOOD == pytest.approx(largest_ratio(expected))
    (said,) = verdicts(plan)
    assert f"up to {math.hypot(1.0, error / GOOD):.3g} times" in said.words
