"""Classifiers and regressions as a plan states them."""

import pytest

from dpcore.domain.axes import Bins, Grid
from dpcore.errors import PlanError
from dpcore.machines.losses import Huber
from dpcore.releases.machines.gradients import GradientClassifier
from dpcore.releases.machines.regression import Regression
from schemas.plan import load_plan

REGRESSION = {
    "kind": "regression",
    "features": ["age", "sex", "region"],
    "target": "income",
    "bandwidth": 0.5,
    "regularisation": 0.1,
}


def built(document: dict, **section: object):
    document["releases"].append({"name": "extra", **section})
    return load_plan(document).built["extra"]


def test_a_regression_predicts_a_number_from_columns_with_nulls(plan_document):
    release = built(plan_document, **REGRESSION)
    assert isinstance(release, Regression)
    assert release.loss == Huber(0.1)
    assert len(release.features.bandwidths) == 1 + 2 + 5
    assert release.share.beta > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"target": "age"}, "target: is also a feature"),
        ({"target": "sex", "features": ["age"]}, "target: sex must be a column of numbers"),
        ({"regularisation": 0}, "regularisation"),
    ],
)
def test_a_regression_that_cannot_be_is_refused_at_its_place(plan_document, change, says):
    with pytest.raises(PlanError, match=says):
        built(plan_document, **(REGRESSION | change))


GRADIENTS = {
    "kind": "classifier",
    "features": ["age", "income", "region"],
    "label": {"column": "sex", "positive": ["F"]},
    "mechanism": "noisy-gradients",
}


def test_a_classifier_by_gradients_needs_no_bandwidth_and_has_coarse_cells(plan_document):
    plan_document["columns"]["code"] = {"type": "integer", "bounds": [0, 999]}
    section = GRADIENTS | {"features": ["code", "income", "region"]}
    release = built(plan_document, **section)
    assert isinstance(release, GradientClassifier)
    code, income, _ = release.feature_axes
    assert isinstance(code, Bins)
    assert code.integer
    assert (code.edges[0], code.edges[-1]) == (0, 1000)
    assert isinstance(income, Grid)
    assert (code.cells, income.cells) == (128, 128)


@pytest.mark.parametrize(
    ("stated", "weight"), [({}, 1.0), ({"weights": 4}, 4.0), ({"weights": "balanced"}, None)]
)
def test_weights_of_the_positive_side_are_a_number_or_balanced(plan_document, stated, weight):
    assert built(plan_document, **(GRADIENTS | stated)).weight == weight


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_classifier_by_gradients_serves_units_of_several_records(plan_document, neighbours):
    plan_document |= {
        "neighbours": neighbours,
        "privacy_unit": {"column": "person", "max_rows": 3},
        "releases": [],
        "synthesis": [],
    }
    release = built(plan_document, **GRADIENTS)
    assert (release.adjacency.relation, release.adjacency.most) == (neighbours, 3)
    assert release.event.adjacency == release.adjacency


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mechanism": "gaussian-process"}, "bandwidth: missing; state it, or use mechanism"),
        ({"weights": 0}, "weights: state balanced, or a number from 0.001 to 1000"),
        ({"weights": "balance"}, "weights: state balanced"),
        ({"features": ["age", "region", "age"]}, "features: a column is listed twice"),
    ],
)
def test_a_classifier_that_cannot_be_is_refused_at_its_place(plan_document, change, says):
    with pytest.raises(PlanError, match=says):
        built(plan_document, **(GRADIENTS | change))


@pytest.mark.parametrize(
    ("positive", "says"),
    [
        (["X"], r"'X' is not a category of sex \('F', 'M'\)$"),
        (
            [True],
            "True is not a category .*; yes and no are truth values unless they are in quotes",
        ),
        (["F", "M"], "must be some of the categories, but not all"),
    ],
)
def test_what_is_positive_is_some_of_the_categories(plan_document, positive, says):
    section = GRADIENTS | {"label": {"column": "sex", "positive": positive}}
    with pytest.raises(PlanError, match=says):
        built(plan_document, **section)
