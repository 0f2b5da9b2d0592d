"""Distribution functions of numeric columns, and the values that bars leave out."""

import numpy as np
import pytest
from scipy import stats

from dpcore.estimates.shapes import compared_shapes

ROWS = 4000


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    random = np.random.default_rng(1)
    one, other = random.normal(size=ROWS), random.normal(0.3, 1, ROWS // 2)
    expected = stats.ks_2samp(one, other).statistic
    assert compared_shapes(one, other).distance == pytest.approx(expected)


def test_many_zeros_do_not_tower_above_the_other_bars():
    random = np.random.default_rng(4)
    values = np.where(random.random(ROWS) < 0.6, 0, random.integers(1, 9999, ROWS))
    found = compared_shapes(values, np.where(values == 0, random.integers(1, 9999, ROWS), values))
    ((value, real, synthetic),) = found.curves.left_out
    assert (value, real, synthetic) == (0, (values == 0).mean(), 0)
    assert found.curves.bars[0].sum() < 0.41 < 0.9 < found.curves.bars[1].sum()
