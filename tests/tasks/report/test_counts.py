"""Charts of counts."""

import numpy as np
import pytest

from tasks.report.cells import Counts
from tasks.report.counts import LONG, one_way


def counts(value: np.ndarray) -> Counts:
    names = [f"cell-{i}." for i in range(len(value))]
    ends = np.maximum(value - 3.3, 0), value + 3.3
    return Counts(
        ["wage"], [names], [names], value, *ends, np.full(len(value), 2.0), titles=["Wage"]
    )


@pytest.mark.parametrize(("cells", "shown"), [(100, range(9, 21)), (LONG, range(LONG))])
def test_a_long_chart_leaves_out_ends_that_may_be_empty(cells, shown):
    places = np.arange(cells)
    figure = one_way(counts(np.where((places >= 10) & (places < 20), 90.0, 3.0)), "wage.parquet")
    drawn = [i for i in range(cells) if f"cell-{i}." in str(figure.picture)]
    assert drawn == [*shown]
    assert (f"{cells - len(shown)} cells below and above" in figure.says) == (len(shown) < cells)
    assert len(figure.table.rows) == cells


def test_a_long_chart_of_noise_alone_is_whole():
    figure = one_way(counts(np.ones(60)), "wage.parquet")
    assert "cells below and above" not in figure.says
    assert all(f"cell-{i}." in str(figure.picture) for i in (0, 30))
