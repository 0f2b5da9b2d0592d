"""Every loss: a bounded slope that it reaches, and its derivatives."""

import math

import numpy as np
import pytest

from dpcore.machines.losses import Hinge, Huber
from tests.dpcore.machines.problems import every_loss


@every_loss
def test_slopes_are_bounded_by_the_stated_one_and_reach_it(loss):
    responses = np.linspace(-40, 40, 80_001)
    for target in (-1.0, 1.0) if loss.classifies else (-0.5, 0.0, 0.31):
        values = loss.value(responses, np.full_like(responses, target))
        slopes = np.abs(np.diff(values) / np.diff(responses))
        assert slopes.max() <= loss.slope * (1 + 1e-9)
        assert slopes.max() == pytest.approx(loss.slope, rel=1e-6)
        assert np.diff(values, 2).min() > -1e-9  # convex


@every_loss
def test_slopes_and_curvatures_are_the_derivatives_of_the_value(loss):
    responses, step = np.linspace(-6.02, 6.07, 1201), 1e-6
    for target in (-1.0, 1.0):
        targets = np.full_like(responses, target)
        rise = loss.value(responses + step, targets) - loss.value(responses - step, targets)
        np.testing.assert_allclose(loss.slopes(responses, targets), rise / (2 * step), atol=1e-6)
        turn = loss.slopes(responses + step, targets) - loss.slopes(responses - step, targets)
        np.testing.assert_allclose(
            loss.curvatures(responses, targets), turn / (2 * step), atol=1e-4
        )
        assert loss.curvatures(responses, targets).max() <= loss.curving


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-4, 1.5, math.nan, math.inf])
def test_thresholds_out_of_range_are_refused(value):
    with pytest.raises(ValueError, match="delta"):
        Huber(value)


def test_the_rounded_hinge_is_the_hinge_but_for_its_corner():
    margins = np.linspace(-3, 5, 801)
    above = Hinge().value(margins, np.ones(801)) - np.maximum(0, 1 - margins)
    assert above[np.abs(1 - margins) >= Hinge.corner] == pytest.approx(0, abs=1e-12)
    assert above.max() == pytest.approx(Hinge.corner / 4)
    assert above.min() >= -1e-12
