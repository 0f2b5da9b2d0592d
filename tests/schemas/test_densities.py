"""Densities and functions as a plan states them."""

import pytest

from dpcore.errors import PlanError
from dpcore.releases.function import SmoothFunction
from dpcore.releases.spectral_density import SpectralDensity
from schemas.plan import load_plan
from tests.conftest import write_plan

DENSITY = {
    "kind": "density",
    "columns": ["age"],
    "bandwidth": 0.1,
    "mechanism": "spectral-gaussian",
}
FUNCTION = {"kind": "function", "columns": ["age", "income"], "bandwidth": 0.1}


def built(folder, document: dict, **section: object):
    document["releases"].append({"name": "extra", **section})
    return load_plan(write_plan(folder, document)).built["extra"]


def test_a_density_may_be_periodic_and_truncated(tmp_path, plan_document):
    release = built(tmp_path, plan_document, **DENSITY, boundary="periodic", terms=5)
    assert isinstance(release, SpectralDensity)
    assert release.periodic
    assert release.mechanism.size == 10


def test_a_density_is_reflected_and_whole_unless_the_plan_says_otherwise(tmp_path, plan_document):
    release = built(tmp_path, plan_document, **DENSITY)
    assert isinstance(release, SpectralDensity)
    assert not release.periodic
    assert release.mechanism.size > 10


@pytest.mark.parametrize("extra", [{"boundary": "periodic"}, {"terms": 3}])
def test_the_binned_mechanism_has_neither(tmp_path, plan_document, extra):
    with pytest.raises(PlanError, match="only with the mechanism spectral-gaussian"):
        built(tmp_path, plan_document, **(DENSITY | {"mechanism": "binned-laplace"} | extra))


@pytest.mark.parametrize(
    ("points", "grid"), [(None, (40, 40)), (30, (30, 30)), ([20, 10], (20, 10))]
)
def test_a_function_has_a_public_grid(tmp_path, plan_document, points, grid):
    chosen = {} if points is None else {"points": points}
    release = built(tmp_path, plan_document, **FUNCTION, **chosen, kernel="exponential")
    assert isinstance(release, SmoothFunction)
    assert release.points == grid
    assert release.kernel == "exponential"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"columns": ["region"]}, "must be an integer or continuous column"),
        ({"columns": ["shoe"]}, "declares no column 'shoe'"),
        ({"bandwidth": [0.1]}, "one number, or one for each column"),
        ({"points": [10]}, "one number, or one for each column"),
        ({"points": 2000}, "between 1 and 1024"),
        ({"kernel": "box"}, "kernel"),
    ],
)
def test_a_function_that_cannot_be_is_refused_at_its_place(tmp_path, plan_document, change, says):
    with pytest.raises(PlanError, match=says):
        built(tmp_path, plan_document, **(FUNCTION | change))
