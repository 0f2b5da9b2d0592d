"""The Sobol' sequence, against SciPy's."""

import numpy as np
import pytest
from scipy.stats import qmc

from dpcore.machines.sobol import DIRECTIONS, sobol_points


@pytest.mark.parametrize("log_points", [0, 1, 5, 12])
@pytest.mark.parametrize("dimensions", [1, 2, 8, len(DIRECTIONS) + 1, len(DIRECTIONS) + 2])
def test_points_are_those_of_scipy(dimensions, log_points):
    theirs = qmc.Sobol(dimensions, scramble=False).random_base2(log_points)
    assert np.array_equal(sobol_points(dimensions, log_points), theirs)
