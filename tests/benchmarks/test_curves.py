"""The benchmark of mean curves: the band holds as often as it says, and is narrow."""

import pytest

from benchmarks.curves import measured


@pytest.mark.slow
def test_bands_hold_and_are_narrower_than_separate_means():
    found = measured(10_000, 48, "1", 0.1, "add-remove", 400)
    assert abs(found["coverage"] - 0.9) < 5 * found["coverage_error"]
    assert found["half_width"] < 0.01
    assert found["half_width"] < 0.6 * found["without_step"] < 0.4 * found["means"]
