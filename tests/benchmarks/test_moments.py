"""The benchmark of moments: its intervals hold the population, nearly as narrow as they could be."""

import pytest

from benchmarks.moments import MODELS, load, repeated
from dpcore.accounting.budget import Budget
from dpcore.releases.numbers.moments import Moments
from tests.conftest import DATA

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the test data")


@pytest.mark.slow
def test_intervals_of_every_family_hold_the_population():
    """Over 40 surveys from a fixed seed."""
    dataset = "fair_affairs"
    domain, codes = load(dataset)
    release = Moments("moments", domain, 5000, Budget.of("2", "1e-6"))
    found = repeated(release, MODELS[dataset], codes, 40, 1)
    assert {"means", "variances", "covariances", "linear"} <= set(found)
    for family, each in found.items():
        assert abs(each["coverage"] - 0.95) < 0.02 + 5 * each["coverage_error"], family
        assert 0.9 < each["optimum_ratio"] < 1.15
