"""The private bandwidth: Silverman's rule on a range whose law and loss are exact."""

import math

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.bandwidth import Bandwidth
from tests.dpcore.releases.contract import drawn


def bandwidth(cells: int, rows: int, alpha: str = "1", smallest: float = 0.001) -> Bandwidth:
    return Bandwidth(
        "h", Domain((Grid("x", -5.0, 5.0, cells),)), rows, Budget.of(alpha), smallest=smallest
    )


def found(release: Bandwidth, records: np.ndarray) -> float:
    (width,) = release.bandwidths(drawn(release, records))
    return width


def test_the_order_of_the_choices_does_not_matter_and_the_rule_is_the_printed_one():
    release = bandwidth(10, 32)
    for cells in ([2, 6], [6, 2]):
        (found,) = release.bandwidths(Noisy(np.array(cells)))
        assert found == pytest.approx(1.06 / 2 * 0.4 / 1.34, rel=1e-3)  # 32^(-1/5) = 1/2


@pytest.mark.parametrize("smallest", [0.0, -1.0, math.inf, math.nan])
def test_a_smallest_bandwidth_that_is_none_is_refused(smallest: float):
    with pytest.raises(ValueError, match="smallest: must be a positive fraction"):
        bandwidth(10, 5, smallest=smallest)


def test_a_column_without_order_is_refused():
    with pytest.raises(ValueError, match="must be an integer or continuous"):
        Bandwidth("h", Domain((Categories("x", ("a", "b")),)), 5, Budget.of(1), smallest=1.0)
