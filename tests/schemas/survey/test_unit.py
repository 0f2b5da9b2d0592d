"""Privacy units of several records and survey weights in a plan."""

from fractions import Fraction

import pytest

from dpcore.domain.adjacency import Adjacency
from schemas.bundle.manifest import privacy_statement
from schemas.plan import Plan, load_plan
from schemas.survey.columns import IdentifierColumn
from schemas.survey.unit import WEIGHT
from tests.schemas.refusals import refused

UNIT = {"column": "home", "max_rows": 4, "name": "household"}
WEIGHTS = {"column": "factor", "largest": "50", "step": "1/2", "total": 9000}


@pytest.fixture
def document(plan_document: dict) -> dict:
    """A plan of counts alone."""
    kept = ("people", "rare", "pairs")
    plan_document["releases"] = [r for r in plan_document["releases"] if r["name"] in kept]
    plan_document["synthesis"] = []
    return plan_document


def with_unit(document: dict, **changes: object) -> dict:
    return document | {"privacy_unit": UNIT | changes}


def with_weights(document: dict, **changes: object) -> dict:
    weighted = [section | {"weighted": True} for section in document["releases"]]
    return document | {"weights": WEIGHTS | changes, "releases": weighted}


@pytest.mark.slow
def test_every_release_takes_its_sensitivity_from_the_unit(document):
    plan = Plan.model_validate(with_unit(document))
    assert plan.adjacency == Adjacency("replace-one", 4, unit="home")
    assert {release.adjacency for release in plan.built.values()} == {plan.adjacency}
    assert plan.built["people"].mechanism.event.l1_sensitivity == 8
    both = with_unit(document) | {"neighbours": "add-remove"}
    assert Plan.model_validate(both).built["people"].mechanism.event.l1_sensitivity == 4


def test_a_unit_of_one_row_hides_how_many_records_there_are(document):
    plan = Plan.model_validate(with_unit(document, max_rows=1))
    assert not plan.adjacency.public_rows
    assert plan.built["people"].mechanism.event.l1_sensitivity == 2


def test_weights_count_as_that_many_records(document):
    plan = Plan.model_validate(with_weights(with_unit(document)))
    release = plan.built["people"]
    assert release.adjacency == Adjacency("replace-one", 400, weighted=True, unit="home")
    assert (release.rows, release.step) == (18_000, Fraction(1, 2))
    assert release.mechanism.event.l1_sensitivity == 800
    assert plan.built["pairs"].mechanism.event.l2_sensitivity_squared > 400**2


@pytest.mark.slow
def test_a_plan_holds_counts_of_records_and_of_weights_side_by_side(document):
    document = with_weights(document)
    document["releases"][1]["weighted"] = False
    plan = Plan.model_validate(document)
    assert plan.built["rare"].adjacency.public_rows
    assert not plan.built["people"].adjacency.public_rows


def test_what_is_read_is_more_than_what_is_published(document):
    plan = Plan.model_validate(with_weights(with_unit(document)))
    extra = {"home": IdentifierColumn(), "factor": WEIGHT}
    assert dict(plan.read_columns) == {**plan.columns, **extra}
    row = Plan.model_validate(document)
    assert row.read_columns == row.columns


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"max_rows": 0}, "privacy_unit.max_rows: Input should be greater than or equal to 1"),
        ({"column": "AGE"}, "privacy_unit.column: 'AGE' is already used"),
        ({"column": "_place"}, "privacy_unit.column: is not a valid column name"),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(changes, told, document):
    assert told in refused(with_unit(document, **changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"largest": "1/2"}, "weights: largest: must be a whole number of steps, from 2"),
        ({"largest": str(2**20)}, "weights: largest: must be a whole number of steps"),
        ({"largest": "20"}, "weights.largest: is below the mean weight, 22.5 (total / rows)"),
        ({"largest": "60", "step": 30}, "weights.step: is above the mean weight, 22.5"),
        ({"column": "age"}, "weights.column: 'age' is already used"),
        ({"column": "home"}, "weights.column: 'home' is already used"),
    ],
)
def test_weights_that_make_no_sense_are_refused(changes, told, document):
    assert told in refused(with_unit(with_weights(document, **changes)))


def test_weights_and_what_they_are_for_belong_together(document):
    assert "weights: no release is `weighted`" in refused(document | {"weights": WEIGHTS})
    document["releases"][1]["weighted"] = True
    assert "releases[1].weighted: the plan states no `weights`" in refused(document)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"strata": "place"}, "strata: 'place' is not under `columns`"),
        ({"strata": "income"}, "strata: 'income' must have at most 200 categories"),
        ({"cluster": "income"}, "cluster: 'income' must have at most 10,000 categories"),
        ({"cluster": "sex"}, "cluster: 'sex' has too few clusters"),
        ({"cluster": "age", "clusters": 5}, "cluster: 'age' has too few clusters"),
        ({"cluster": "age", "clusters": 500}, "clusters: 500 is more than the"),
        ({"clusters": 20}, "clusters: needs `cluster`"),
        (
            {"privacy_unit": {"column": "home", "max_rows": 51}},
            "releases[0].mechanism: noisy-scores takes at most 50 records of a unit",
        ),
    ],
)
def test_a_design_that_a_model_cannot_honour_is_refused(changes, told, document):
    model = {"name": "m", "kind": "model", "formula": "age ~ sex"}
    assert told in refused(document | changes | {"releases": [model], "synthesis": []})


def test_what_has_no_weighted_form_says_so(document):
    document["budget"]["granted"]["gamma"] = document["budget"]["requested"]["gamma"] = "0.5"
    random = {
        "name": "r",
        "kind": "histogram",
        "columns": ["sex"],
        "mechanism": "random-low-counts",
    }
    document["releases"].append(random)
    assert "releases[3]" in (told := refused(with_weights(document)))
    assert "records only" in told or "public" in told
    document["releases"][0]["weighted"] = True
    document["releases"][3] = {"name": "m", "kind": "mean", "column": "age", "by": "sex"}
    document["budget"]["granted"]["gamma"] = document["budget"]["requested"]["gamma"] = "0"
    told = refused(document | {"weights": WEIGHTS})
    assert "releases[3].kind: a mean counts every record once" in told
    assert 'kind: model, formula: "age ~ 0 + C(sex)"' in told


def test_quantiles_of_weights_take_their_sensitivity_from_steps(document):
    document["releases"] = [
        {"name": "q", "kind": "quantiles", "column": "age", "levels": ["0.5"], "weighted": True}
    ]
    document["budget"]["requested"]["beta"] = "0"
    release = Plan.model_validate(document | {"weights": WEIGHTS}).built["q"]
    assert (release.rows, release.adjacency.most) == (18_000, 100)
    assert release.mechanism.sensitivity == 100 * 2


STATED = "for tables that differ in one record; the number of records, 400, is public."
HOMES = "for tables that differ in all records of one household;"
ADDED = "for tables of which one has one additional record;"


@pytest.mark.parametrize(
    ("unit", "relation", "told"),
    [
        ("row", "replace-one", STATED),
        ("row", "add-remove", f"{ADDED} the number of records is private; 400 is a public guess."),
        (
            UNIT,
            "replace-one",
            f"{HOMES} the number of records is private; 400 is a public guess, and the number of"
            " units (household) is not hidden.",
        ),
        (
            UNIT,
            "add-remove",
            "for tables of which one has all records of one additional household; the number"
            " of records is private; 400 is a public guess.",
        ),
    ],
)
def test_the_promise_names_its_unit_and_relation(unit, relation, told, document):
    plan = Plan.model_validate(document | {"privacy_unit": unit, "neighbours": relation})
    statement = privacy_statement(plan)
    assert f"{told} It is for tables that fit the plan:" in statement
    assert f"({relation})" in plan.protection.metric
    assert ("at most 4 are used" in plan.protection.who) == (unit != "row")
    said = " ".join(plan.protection.limits)
    assert ("more than 4 records" in said) == (unit != "row")
    assert ("The number of records is public" in said) == plan.adjacency.public_rows


def test_the_guarantee_says_which_numbers_are_moved(plan_document):
    plain = load_plan(plan_document).protection.domain
    assert "outside theirs" not in plain
    plan_document["columns"]["income"]["outside"] = "clamp"
    moved = load_plan(plan_document).protection.domain
    assert "(in income, numbers out of bounds count as the nearest bound)" in moved
