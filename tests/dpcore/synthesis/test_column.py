"""The numbers inside the bins of synthetic records, at the ends of what doubles can hold."""

from fractions import Fraction

import numpy as np

from dpcore.domain.axes import Bins
from dpcore.synthesis.column import ColumnValues


def test_the_only_value_that_a_bin_has_left_takes_its_records_where_its_density_is_zero():
    """All other values of the wide bin are shared, by nobody as it came out."""
    axis, records = Bins("months", (0.0, 10.0, 20.0, 30.0, 1000.0, 1010.0)), [900, 900, 7, 7, 10]
    weights, codes = np.full(1010, 1e-12), np.repeat(np.arange(5), records)
    shared = np.delete(np.arange(30, 1000), 500 - 30)
    values = ColumnValues(
        Fraction(1), 0, weights, weights, shared, np.zeros_like(shared), sum(records)
    )
    with np.errstate(over="raise", invalid="raise"):
        found = values.inside(axis, codes)
    assert np.allclose(np.diff(found.cumulative[[0, 10, 20, 30, 1000, 1010]]), records)
    assert np.isclose(found.cumulative[501] - found.cumulative[500], 7)
