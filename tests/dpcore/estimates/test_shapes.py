"""Decimals, heaped values and distribution functions of numeric columns."""

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


@pytest.mark.parametrize(("step", "places"), [(1.0, 0), (0.5, 1), (0.01, 2)])
def test_the_last_decimal_is_the_step_where_no_other_stands_out(step, places):
    values = (np.random.default_rng(3).integers(1, 3000, ROWS) * step).round(places)
    found = compared_shapes(values, values)
    assert (found.step, found.real.decimals) == (pytest.approx(step), places)
    assert found.real.multiples == found.synthetic.multiples == 1


def test_many_zeros_are_an_atom_and_no_rounding():
    random = np.random.default_rng(4)
    values = np.where(random.random(ROWS) < 0.6, 0, random.integers(1, 9999, ROWS))
    found = compared_shapes(values, np.where(values == 0, random.integers(1, 9999, ROWS), values))
    assert found.step == 1
    assert (found.atoms, found.worst_atom) == (1, 0.0)
    assert found.worst_shares == ((values == 0).mean(), 0)
    ((value, real, synthetic),) = found.curves.left_out
    assert (value, real, synthetic) == (0, (values == 0).mean(), 0)
    assert found.curves.bars[0].sum() < 0.41 < 0.9 < found.curves.bars[1].sum()
