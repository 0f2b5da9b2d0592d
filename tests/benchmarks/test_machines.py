"""The benchmark of machines measures what it says, on rows small enough for a test."""

import importlib.util

import pytest

from benchmarks.machines import LOSSES, measured


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_line_has_time_memory_and_objective(loss):
    line = measured(loss, 300, 8)
    assert line["loss"] == loss.name
    assert (line["rows"], line["dimensions"]) == (300, 16)
    assert line["cpu_seconds"] >= 0
    assert 0 < line["objective"] < 1
    assert 0 < line["peak_gib"] < 8
    compared = importlib.util.find_spec("sklearn") is not None and loss.name != "huber"
    assert (line["ratio"] is not None) == compared
    if compared:
        assert line["objective"] <= line["sklearn_objective"] + 1e-6
