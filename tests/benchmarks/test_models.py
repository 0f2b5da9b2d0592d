"""The benchmark of measured models: intervals hold the population, not much wider than the survey's."""

import pandas as pd
import pytest

from benchmarks.designs import DESIGNS
from benchmarks.models import QUESTIONS, built, codes_of, load, repeated, summary
from tests.conftest import DATA

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the test data")


@pytest.mark.slow
@pytest.mark.parametrize("design", [name for name in DESIGNS if name != "records"])
def test_intervals_hold_the_population_whatever_the_design(design):
    """Over 20 surveys from a fixed seed; those of the survey itself do so too."""
    columns, frame = load("fair_affairs")
    family, formula = QUESTIONS["fair_affairs"][0]
    release = built(columns, 20_000, "2", family, formula, design)
    found = summary(repeated(release, codes_of(release, frame), 20, 1, design=design))
    for coverage in (found["coverage"], found["survey"]):
        assert abs(coverage - 0.95) < 0.02 + 5 * found["coverage_error"]
    assert 1 < found["width_ratio"] < 3
    assert found["refused"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("design", [name for name in DESIGNS if name != "records"])
def test_intervals_of_means_and_shares_of_groups_hold_the_population(design):
    """Over 20 surveys from a fixed seed."""
    columns, frame = load("adult_raw")
    for formula in ("hours_per_week ~ 0 + C(sex)", "{income == '>50K'} ~ 1"):
        release = built(columns, 20_000, "1", "gaussian", formula, design)
        found = summary(repeated(release, codes_of(release, frame), 20, 1, design=design))
        assert abs(found["coverage"] - 0.95) < 0.02 + 5 * found["coverage_error"], formula
        assert found["width_ratio"] < 5
        assert found["refused"] == 0


@pytest.mark.slow
def test_intervals_of_every_family_hold_the_population_and_say_something():
    """Over 20 surveys from a fixed seed."""
    columns, frame = load("fair_affairs")
    for family, formula in QUESTIONS["fair_affairs"]:
        release = built(columns, 20_000, "1", family, formula)
        lines = repeated(release, codes_of(release, frame), 20, 1)
        found = summary(pd.concat([lines]))
        assert abs(found["coverage"] - 0.95) < 0.02 + 5 * found["coverage_error"], family
        assert 1 < found["width_ratio"] < 1.8
        assert found["refused"] == 0
