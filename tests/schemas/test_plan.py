"""A plan that lacks something public, or contradicts itself, is refused at its place."""

import json
from fractions import Fraction

import pytest
import yaml

from dpcore.accounting.budget import Budget, total
from dpcore.domain.adjacency import Adjacency
from dpcore.errors import PlanError
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.releases.numbers.ratio_mean import RatioMean
from schemas.bundle.manifest import privacy_statement
from schemas.plan import load_plan
from tests.bare import PLAN
from tests.conftest import write_plan
from tests.schemas.refusals import refused


def test_the_shares_add_up_to_the_requested_budget_exactly(plan_path):
    plan = load_plan(plan_path)
    shares = [release.share for release in plan.built.values()]
    assert total(shares) == Budget.of("4", "1e-6")
    assert plan.built["pairs"].share.alpha == Fraction(4) * Fraction(3, 14)


def test_only_mechanisms_that_spend_beta_get_a_share_of_it(plan_path):
    plan = load_plan(plan_path)
    with_beta = {name for name, release in plan.built.items() if release.share.beta}
    assert with_beta == {"pairs", "ages", "rich", "rarer", "path", "pay"}


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("columns.age", {"type": "integer"}, "columns.age.bounds: missing"),
        ("columns.sex", {"type": "categorical"}, "columns.sex.categories: missing"),
        ("columns.sex.categories", ["F", "F"], "columns.sex: categories: a category"),
        ("columns.age.bounds", [5, 5], "columns.age: bounds"),
        ("columns.income.bounds", [0, float("inf")], "columns.income.bounds"),
        ("surprise", 1, "surprise: unknown key"),
        ("rows", 0, "rows"),
        ("neighbours", "swap", "neighbours"),
        ("budget.requested.alpha", 0.5, "budget.requested.alpha: write the number"),
        ("budget.requested.alpha", "0", "alpha must be positive"),
        ("budget.requested.alpha", "-1", "budget.requested.alpha: must not be negative"),
        ("budget.requested.alpha", "11", "requested is more than granted"),
        ("budget.requested.beta", "0", "spends beta"),
        ("budget.requested.gamma", "0.1", "requested is more than granted"),
        ("releases.0.weight", 0, "releases[0]: weight: must be positive"),
        ("releases.0.columns", ["sex", "age", "age"], "releases[0].columns: a column appears"),
        ("releases.0.columns", ["sex", "shoe"], "declares no column 'shoe'"),
        ("releases.0.bins", {"age": 7}, "releases[0].bins.age"),
        ("releases.0.bins", {"age": [18, 30]}, "releases[0].bins.age: edges must begin"),
        ("releases.2.bins", {}, "releases[2].bins.income: missing"),
        ("releases.2.ways", 9, "releases[2].ways"),
        ("releases.2.sets", [["sex"]], "releases[2]: state either ways or sets"),
        ("releases.5.features", ["shoe", "age", "sex"], "releases[5].features: the plan"),
        ("releases.6.column", "region", "releases[6].column: region must be"),
        ("releases.6.levels", ["0.5", "1"], "releases[6].levels: at least one, each"),
        ("releases.7.condition", {"column": "age"}, "releases[7].condition: state either"),
        (
            "releases.7.condition",
            {"column": "sex", "categories": ["X"]},
            "releases[7].condition.categories: ['X'] are not categories",
        ),
        ("releases.7.condition.at_least", 18, "condition: must be true for some values"),
        (
            "releases.7.mechanism",
            "minimax-table",
            "releases[7]: prior: the mechanism minimax-table does not use it, only discrete-laplace",
        ),
        ("releases.1.name", "people", "releases[1].name: 'people' is repeated"),
        ("releases.1.name", "../people", "releases[1].name"),
        ("synthesis.0.from", "nobody", "synthesis[0].from: the plan has no release"),
        ("synthesis.0.from", "age-quartiles", "synthesis[0].from: records cannot be drawn"),
        ("dprelease", 2, "dprelease"),
    ],
)
def test_a_faulty_plan_is_refused_at_its_place(plan_document, place, value, says):
    assert says in refused(plan_document, {place: value})


@pytest.mark.parametrize("key", ["dataset", "source", "rows", "columns", "budget", "releases"])
def test_what_a_plan_must_state_has_no_default(plan_document, key):
    del plan_document[key]
    assert f"{key}: missing" in refused(plan_document)


def test_beta_asked_of_pure_mechanisms_alone_is_refused(plan_document):
    plan_document["releases"] = plan_document["releases"][:2]
    plan_document["synthesis"] = []
    assert "budget.requested.beta: no mechanism of this plan can spend beta" in refused(
        plan_document
    )


def test_gamma_that_no_mechanism_can_spend_is_refused(plan_document):
    plan_document["budget"]["granted"]["gamma"] = "0.1"
    plan_document["budget"]["requested"]["gamma"] = "0.1"
    assert "budget.requested.gamma" in refused(plan_document)


def test_random_differential_privacy_needs_gamma_and_says_what_it_means(plan_document):
    people = plan_document["releases"][0]
    people |= {"mechanism": "random-zero-cells", "columns": ["sex", "region"], "bins": {}}
    assert "releases[0].mechanism: random-zero-cells spends gamma" in refused(plan_document)
    for amount in plan_document["budget"].values():
        amount["gamma"] = "0.1"
    plan = load_plan(plan_document)
    assert plan.built["people"].share.gamma == Fraction("0.1")
    assert plan.built["pairs"].share.gamma == 0
    assert "40 of the 400 people" in privacy_statement(plan)


def test_all_faults_are_told_at_once(plan_document):
    plan_document["columns"]["age"]["bound"] = 3
    plan_document["columns"]["income"]["grid"] = 1
    message = refused(plan_document)
    assert "columns.age.bound: unknown key" in message
    assert "columns.income.grid" in message


def test_a_key_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("dprelease: 1\nrows: 3\nrows: 4\n")
    with pytest.raises(PlanError, match="line 3: the key 'rows' is repeated"):
        load_plan(path)


def test_yaml_anchors_and_merges_are_understood(tmp_path, plan_document):
    path = write_plan(tmp_path, plan_document)
    text = path.read_text().replace(
        "  children:\n    type: integer\n", "  children:\n    <<: *whole\n"
    )
    path.write_text(text.replace("  age:\n    type: integer", "  age: &whole\n    type: integer"))
    assert load_plan(path).columns["children"].bounds == (0, 6)


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "a: !!python/object:os.system x", "\x00"])
def test_what_is_no_plan_gets_one_clear_error(tmp_path, text):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(PlanError, match=r"plan\.yaml"):
        load_plan(path)


def test_the_digest_ignores_where_the_table_lies_and_nothing_else(plan_document):
    plan = load_plan(plan_document)
    moved = load_plan(plan_document | {"source": "elsewhere.csv"})
    assert plan.digest == moved.digest
    assert "source" not in json.dumps(plan.public())
    plan_document["releases"][0]["weight"] = 2
    assert load_plan(plan_document).digest != plan.digest


def test_a_plan_keeps_its_digest_where_later_keys_say_nothing():
    """A release that an earlier version began is the same release for this one."""
    digest = "aaf670949f3b9ca63a922f3096f82d3f13a073f4d9335757e8a0e9ac13a4f0a3"
    assert load_plan(yaml.safe_load(PLAN)).digest == digest


def test_overrides_replace_what_the_plan_has_and_add_nothing(plan_path):
    plan = load_plan(plan_path, {"source": "x.csv", "budget.requested.alpha": "1"})
    assert plan.source == "x.csv"
    assert plan.budget.requested.alpha == 1
    assert load_plan(plan_path, {"releases.0.weight": 2}).releases[0].weight == 2
    with pytest.raises(PlanError, match=r"budget\.wanted: unknown key"):
        load_plan(plan_path, {"budget.wanted": "1"})
    with pytest.raises(PlanError, match="no such key"):
        load_plan(plan_path, {"rows.x": "1"})


def test_every_release_is_built_for_the_neighbours_of_the_plan(plan_document):
    plan_document["neighbours"] = "add-remove"
    plan_document["releases"].append({"name": "mean", "kind": "mean", "column": "age"})
    built = load_plan(plan_document).built
    assert {release.adjacency for release in built.values()} == {Adjacency("add-remove")}
    assert {release.event.to_dict()["neighbours"] for release in built.values()} == {"add-remove"}
    assert isinstance(built["mean"], RatioMean)
    plan_document["neighbours"] = "replace-one"
    replaced = load_plan(plan_document)
    assert isinstance(replaced.built["mean"], Mean)
    assert "by" not in replaced.section("mean").model_dump()
    # The same alpha buys counts half the noise where a record is added: nothing is converted.
    errors = [plan["people"].expected_error()[0].value for plan in (built, replaced.built)]
    assert errors[0] < 0.6 * errors[1]


def test_a_mean_by_group_or_of_a_column_with_nulls_counts_its_records(plan_document):
    plan_document["columns"]["income"]["nullable"] = True
    plan_document["releases"] = [
        {"name": "paid", "kind": "mean", "column": "income"},
        {"name": "by-sex", "kind": "mean", "column": "age", "by": "sex"},
    ]
    plan_document["synthesis"], plan_document["budget"]["requested"]["beta"] = [], "0"
    plan = load_plan(plan_document)
    paid, by_sex = plan.built.values()
    assert isinstance(paid, RatioMean)
    assert isinstance(by_sex, RatioMean)
    assert by_sex.domain.names == ("sex", "age")
    assert "by" in plan.section("by-sex").model_dump()
    last = plan_document["releases"][1]
    levels, both = {"kind": "quantiles", "levels": ["1/2"]}, {"by": ["sex", "region"]}
    plan_document["releases"][1] = last | levels | both | {"column": "income"}
    medians = load_plan(plan_document).built["by-sex"]
    assert isinstance(medians, ColumnQuantiles)
    assert (medians.domain.names, medians.groups) == (("sex", "region", "income"), 10)
    for change, says in [
        (levels | {"by": "income"}, r"releases\[1\]\.by: 'income' has real numbers"),
        (levels | {"by": ["sex", "sx"]}, r"releases\[1\]\.by: .* no column 'sx'.*did you mean"),
        (levels | {"by": ["sex", "age"]}, r"a column appears twice"),
        ({"by": "nowhere"}, r"releases\[1\]\.by: the plan declares no column 'nowhere'"),
        ({"by": "income"}, r"releases\[1\]\.by: 'income' has real numbers"),
        ({"mechanism": "random-smooth-laplace"}, r"by: random-smooth-laplace makes no groups"),
    ]:
        plan_document["releases"][1] = last | change
        with pytest.raises(PlanError, match=says):
            load_plan(plan_document)


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"kind": "histogram", "columns": ["sex"], "mechanism": "random-zero-cells"}, "random"),
        ({"kind": "histogram", "columns": ["sex"], "mechanism": "random-low-counts"}, "random"),
        ({"kind": "mean", "column": "age", "mechanism": "random-smooth-laplace"}, "random-smooth"),
        ({"kind": "sampled-histogram", "columns": ["sex"], "draws": 5}, "dirichlet-multinomial"),
        ({"kind": "near-records", "column": "age", "bins": {"age": 6}, "draws": 5}, "near-records"),
        (
            {
                "kind": "listed-function",
                "column": "age",
                "bins": {"age": 2},
                "functions": {"even": [1, 1], "young": [2, 1]},
            },
            "nearest-function",
        ),
        (
            {"kind": "asked-function", "columns": ["age"], "bandwidth": 0.1, "points": [[30]]},
            "gaussian-process",
        ),
    ],
)
def test_what_is_proved_for_public_rows_alone_is_refused(plan_document, section, named):
    plan_document["budget"]["granted"]["gamma"] = "0.5"
    plan_document["budget"]["requested"]["gamma"] = "0.5" if "random" in named else "0"
    plan_document["releases"].append({"name": "last", **section})
    load_plan(plan_document)
    plan_document["neighbours"] = "add-remove"
    said = refused(plan_document)
    assert f"releases[12].mechanism: {named}" in said
    assert "neighbours: replace-one" in said
