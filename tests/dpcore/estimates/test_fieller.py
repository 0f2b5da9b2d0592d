"""Fieller's set holds the quotient at its rate, however near zero the divisor is."""

import math

import numpy as np
import pytest

from dpcore.estimates.fieller import EVERYTHING, fieller
from tests.chance import shares

Z = 1.6448536269514722


@pytest.mark.parametrize("divisor", [0.0, 0.5, 1.5, 4.0, 30.0])
@pytest.mark.parametrize("covariance", [0.0, 0.6])
def test_the_set_holds_the_quotient_nine_times_in_ten(divisor, covariance):
    exact = 2.0 / divisor if divisor else math.inf
    noise = np.random.default_rng(1).multivariate_normal(
        (0, 0), ((1, covariance), (covariance, 1)), 4000
    )
    held = 0
    for number, by in noise + np.array([2.0, divisor]):
        pieces = fieller(number, 1.0, by, 1.0, covariance, Z)
        held += any(low <= exact <= high for low, high in pieces)
    least, most = shares(4000, 0.9)
    assert least <= held / 4000 <= most


def test_the_set_contains_the_published_quotient_and_may_be_all_numbers():
    for number, by in np.random.default_rng(2).normal(0, 3, (300, 2)):
        pieces = fieller(number, 1.0, by, 1.0, 0.3, Z)
        assert any(low <= number / by <= high for low, high in pieces)
    assert fieller(0.1, 1.0, 0.1, 1.0, 0.0, Z) == EVERYTHING
    assert fieller(1.0, 0.0, 0.0, 0.0, 0.0, Z) == EVERYTHING
    assert fieller(5.0, 1.0, Z, 1.0, 0.0, Z)[0][1] == math.inf
