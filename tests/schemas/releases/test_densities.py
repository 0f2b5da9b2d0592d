"""Densities and functions as a plan states them."""

from fractions import Fraction

import pytest

from dpcore.errors import PlanError
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.parts import DensityOfParts
from dpcore.releases.densities.tuned import TunedDensity
from dpcore.releases.densities.waves import Waves
from schemas.plan import load_plan, published_plan
from schemas.plan.best import COMPARED
from schemas.releases.density import MECHANISMS

DENSITY = {
    "kind": "density",
    "columns": ["age"],
    "bandwidth": 0.1,
    "mechanism": "spectral-gaussian",
}
FUNCTION = {"kind": "function", "columns": ["age", "income"], "bandwidth": 0.1}


def built(document: dict, **section: object):
    document["releases"].append({"name": "extra", **section})
    return load_plan(document).built["extra"]


def test_a_density_may_be_truncated(plan_document):
    assert built(plan_document, **DENSITY, boundary="periodic", terms=5).mechanism.size == 10


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_may_be_periodic(plan_document, mechanism):
    keys = DENSITY | {"mechanism": mechanism, "boundary": "periodic", "bandwidth": 0.15}
    assert built(plan_document, **keys).functions is Waves


@pytest.mark.parametrize(
    ("points", "grid"), [(None, (40, 40)), (30, (30, 30)), ([20, 10], (20, 10))]
)
def test_a_function_has_a_public_grid(plan_document, points, grid):
    chosen = {} if points is None else {"points": points}
    release = built(plan_document, **FUNCTION, **chosen, kernel="exponential")
    assert isinstance(release, SmoothFunction)
    assert release.points == grid
    assert release.kernel == "exponential"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"columns": ["region"]}, "must be an integer or continuous column"),
        ({"bandwidth": [0.1]}, "one number, or one for each column"),
        ({"points": 2000}, "between 1 and 1024"),
    ],
)
def test_a_function_that_cannot_be_is_refused_at_its_place(plan_document, change, says):
    with pytest.raises(PlanError, match=says):
        built(plan_document, **(FUNCTION | change))


PRIVATE = {"private": "quantiles", "share": "0.25", "smallest": 0.02}


def test_a_bandwidth_may_be_drawn_from_the_share_of_its_density(plan_document):
    release = built(plan_document, **(DENSITY | {"bandwidth": PRIVATE}))
    assert isinstance(release, TunedDensity)
    assert release.first_share == Fraction(1, 4)
    assert release.smooth.bandwidths == (0.02,)


@pytest.mark.parametrize(
    ("bandwidth", "says"),
    [
        (PRIVATE | {"share": "1"}, "bandwidth.share: must lie between 0.001 and 0.999"),
        (PRIVATE | {"smallest": 0.001}, "greater than or equal to 0.002"),
        ({"private": "quantiles"}, "smallest: missing"),
        (PRIVATE | {"private": "guess"}, "bandwidth.private"),
    ],
)
def test_a_private_bandwidth_that_cannot_be_is_refused(plan_document, bandwidth, says):
    with pytest.raises(PlanError, match=says):
        built(plan_document, **(DENSITY | {"bandwidth": bandwidth}))


BEST = DENSITY | {"mechanism": "best"}


def whole(release) -> float:
    return sum(release.error_parts.values())


@pytest.mark.parametrize("bandwidth", [0.02, 0.3])
def test_best_is_the_mechanism_of_least_whole_error(plan_document, bandwidth):
    section = BEST | {"bandwidth": bandwidth}
    best = built(plan_document, **section)
    for mechanism in COMPARED:
        plan_document["releases"][-1]["mechanism"] = mechanism
        other = load_plan(plan_document).built["extra"]
        assert whole(best) <= whole(other)


def test_the_mechanism_takes_the_place_of_the_word_in_all_that_is_published(plan_document):
    plan_document["releases"].append({"name": "extra", **BEST})
    plan = load_plan(plan_document)
    mechanism = plan.section("extra").mechanism
    assert mechanism in COMPARED
    assert plan.public()["releases"][-1]["mechanism"] == mechanism
    assert published_plan(plan.public()).digest == plan.digest
    plan_document["releases"][-1]["mechanism"] = mechanism
    assert load_plan(plan_document).digest == plan.digest


def test_beta_that_the_best_mechanism_spares_is_not_requested(plan_document):
    plan_document["releases"] = [{"name": "extra", **BEST}]
    for section in ("synthesis", "weights", "analyses"):
        plan_document.pop(section, None)
    plan_document["budget"]["requested"] |= {"beta": "1e-6", "gamma": "0"}
    plan = load_plan(plan_document)
    assert plan.budget.requested.beta == 0 == plan.built["extra"].share.beta
    assert plan.requested == plan.prices["extra"]


def test_densities_of_columns_with_nulls_have_a_best_mechanism_among_those_that_take_them(
    plan_document,
):
    plan_document["columns"]["age"]["nullable"] = True
    plan_document |= {"synthesis": []}
    plan_document["releases"] = [s for s in plan_document["releases"] if s["name"] == "people"]
    best = built(plan_document, **BEST | {"bandwidth": 0.25})
    assert best.nullable
    assert best.counts_mass
    assert "larger in proportion if records have no value" in best.expected_error()[-1].note
    plan_document["releases"].pop()
    plan_document["budget"]["requested"]["beta"] = "0"
    with pytest.raises(PlanError, match="difference-body is for columns without nulls"):
        built(plan_document, **DENSITY | {"mechanism": "difference-body", "bandwidth": 0.25})


@pytest.mark.parametrize("mechanism", ["binned-laplace", "spectral-gaussian", "best"])
def test_point_masses_of_a_column_are_counted_beside_its_density(plan_document, mechanism):
    plan_document["columns"]["income"]["point_masses"] = [0, 9000]
    section = DENSITY | {"columns": ["income"], "mechanism": mechanism}
    release = built(plan_document, **section)
    assert isinstance(release, DensityOfParts)
    assert release.points.tolist() == [0, 9000]
    assert release.each.of_rows == "records outside point masses"


@pytest.mark.parametrize("section", [DENSITY, FUNCTION])
@pytest.mark.parametrize("transform", ["log1p", ["log1p"]])
def test_a_density_may_be_estimated_on_another_scale(plan_document, section, transform):
    release = built(plan_document, **section | {"columns": ["income"]}, transform=transform)
    assert release.transforms == {"income": "log1p"}
    assert release.domain.axes[0].bounds == (0.0, 9000.0)
    assert any("on the scale of log1p(income)" in e.note for e in release.expected_error())


@pytest.mark.parametrize(("transform", "cells"), [("none", 65536), ("log1p", 4096)])
def test_a_fine_grid_for_means_is_coarser_on_another_scale(plan_document, transform, cells):
    plan_document["columns"]["income"]["grid"] = 65536
    release = built(plan_document, **DENSITY | {"columns": ["income"]}, transform=transform)
    assert release.domain.axes[0].cells == cells


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"transform": "log"}, "transform: log of income needs a lower bound above 0.*log1p"),
        ({"transform": ["log1p", "none"]}, "transform: one for all columns, or one for each"),
        ({"transform": "exp"}, "transform"),
        ({"columns": ["age"], "transform": "sqrt"}, "declare it as continuous, with step 1"),
        ({"columns": ["region"], "transform": "sqrt"}, "region must be a continuous column"),
    ],
)
def test_a_transform_that_cannot_be_is_refused(plan_document, change, says):
    with pytest.raises(PlanError, match=says):
        built(plan_document, **(DENSITY | {"columns": ["income"]} | change))
