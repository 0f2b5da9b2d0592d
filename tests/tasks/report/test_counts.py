"""Charts of counts."""

import numpy as np
import pytest

from schemas.survey.columns import CategoricalColumn, ContinuousColumn
from tasks.report.cells import CountTable
from tasks.report.counts import LONG, one_way, two_way


def counts(value: np.ndarray) -> CountTable:
    names = [f"cell-{i}." for i in range(len(value))]
    ends = np.maximum(value - 3.3, 0), value + 3.3
    return CountTable(
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


@pytest.mark.parametrize("null", [False, True])
def test_a_heat_map_leaves_out_numbers_at_the_ends_without_a_clear_count(null):
    """But never categories, and never null."""
    bins = [*((i, i + 1) for i in range(6)), *[None] * null]
    value = np.full((len(bins), 3), 5.0)
    value[1, 0], value[3, 1], value[2] = 90.0, 90.0, 3.0
    keys = [[key for key in bins for _ in "abc"], [*"abc"] * len(bins)]
    labels = [[f"bin {key}." for key in keys[0]], [f"group {key}." for key in keys[1]]]
    error, flat = np.full(value.size, 2.0), value.ravel()
    table = CountTable(
        ["wage", "group"], keys, labels, flat, flat - 3.3, flat + 3.3, error, titles=["W", "G"]
    )
    columns = {
        "wage": ContinuousColumn(type="continuous", bounds=[0, 6]),
        "group": CategoricalColumn(type="categorical", categories=[*"abc"]),
    }
    figure = two_way(table, "both.parquet", columns)
    drawn = [key for key in bins if f"bin {key}." in str(figure.picture)]
    assert drawn == [*bins[1:4], *[None] * null]
    assert all(f"group {key}." in str(figure.picture) for key in "abc")
    assert "Rows and columns at the ends without a count clearly above zero (3)" in figure.says
    assert f"of {3 * len(drawn)})" in figure.says
    assert len(figure.table.rows) == value.size
