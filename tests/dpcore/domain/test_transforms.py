"""Transforms and the axes that have them."""

import numpy as np
import pytest

from dpcore.domain.axes import Grid
from dpcore.domain.transforms import TRANSFORMS

EACH = pytest.mark.parametrize("name", TRANSFORMS)


@EACH
def test_a_transform_is_undone_and_has_the_slope_of_its_curve(name):
    transform, x = TRANSFORMS[name], np.array([0.02, 0.5, 1.0, 7.0, 4e5])
    np.testing.assert_allclose(transform.backward(transform.forward(x)), x, rtol=1e-12)
    step = 1e-6 * x
    rise = transform.forward(x + step) - transform.forward(x - step)
    np.testing.assert_allclose(transform.slope(x), rise / (2 * step), rtol=1e-4)


@EACH
def test_cells_are_equal_on_the_scale_of_the_transform(name):
    axis = Grid("x", 2.0, 50.0, 7, transform=name)
    edges = np.array(axis.edges)
    assert (edges[0], edges[-1]) == (2.0, 50.0)
    widths = np.diff(TRANSFORMS[name].forward(edges))
    np.testing.assert_allclose(widths, axis.span / 7)
    np.testing.assert_allclose(axis.to_unit(edges), np.arange(8) / 7, atol=1e-15)
    np.testing.assert_allclose(axis.from_unit(np.arange(8) / 7), edges)


def test_a_root_has_no_slope_at_zero():
    assert Grid("x", 0.0, 50.0, 7, transform="sqrt").slope(np.zeros(1)) == [np.inf]


@pytest.mark.parametrize(
    ("name", "lower", "says"),
    [
        ("log", 0.0, "transform: log of x needs a lower bound above 0; raise it, or use log1p"),
        ("sqrt", -1.0, "transform: sqrt of x needs a lower bound of 0 or more"),
        ("log1p", -1.0, "transform: log1p of x needs a lower bound above -1"),
    ],
)
def test_bounds_lie_where_the_transform_is_defined(name, lower, says):
    with pytest.raises(ValueError, match=says):
        Grid("x", lower, 50.0, 7, transform=name)


def test_whole_numbers_are_declared_as_continuous():
    with pytest.raises(ValueError, match="declare it as continuous, with step 1"):
        Grid("x", 1.0, 50.0, 49, integer=True, transform="log")
