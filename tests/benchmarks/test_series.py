"""The benchmark of series: its goals are met, as stated and as drawn."""

import numpy as np
import pytest

from benchmarks.series import METHODS, Drawn, compared
from tests.chance import shares


@pytest.mark.parametrize(
    ("periods", "over_months", "over_totals"), [(12, 1.45, 2.0), (60, 2.4, 3.4)]
)
def test_totals_to_date_have_far_less_error_at_the_same_price(periods, over_months, over_totals):
    counts = np.full((periods, 3000), 500)
    draws = {name: Drawn(make(periods), counts) for name, make in METHODS.items()}
    prices = {drawn.noise.event.concentrated for drawn in draws.values()}
    assert len(prices) == 1
    line = compared(periods, "to-date", draws)
    stated = line["stated"]
    assert stated["months"] / stated["square_root"] >= over_months
    assert stated["totals"] / stated["square_root"] >= over_totals
    for name in METHODS:
        assert line[name] == pytest.approx(stated[name], rel=0.07)
    least, most = shares(counts.shape[1], 0.9)  # as if all periods of a count erred alike
    assert least <= line["held"] <= most
