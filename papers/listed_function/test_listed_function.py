"""The nearest of some functions: its score and its stated excess."""

import math

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from papers.listed_function.release import ListedFunction
from tests.chance import most_failures
from tests.dpcore.releases.contract import drawn, exact_vector

AGES = Domain((Bins("age", (0.0, 20.0, 40.0, 90.0)),))
NAMES, SHARES = ("even", "young", "old", "none old"), ((1, 1, 1), (4, 1, 0.5), (1, 1, 9), (1, 1, 0))


def release(rows: int, alpha: str = "1") -> ListedFunction:
    return ListedFunction("f", AGES, rows, Budget.of(alpha), NAMES, SHARES)


def test_the_score_is_the_largest_difference_of_distribution_functions_in_records():
    records = (0, 0, 1, 2, 2, 2, 2, 1, 0)
    shares = np.cumsum(np.bincount(records, minlength=3)) / 9
    for shown, found in zip(SHARES, exact_vector(release(9), records), strict=True):
        distance = np.abs(shares - np.cumsum(shown) / sum(shown)).max()
        assert found == pytest.approx(9 * distance, abs=0.5)


@pytest.mark.slow
def test_the_excess_holds_and_the_chosen_function_is_published():
    listed, records = release(60), [0] * 20 + [1] * 22 + [2] * 18
    scores = exact_vector(listed, tuple(records)) / 60
    missed = 0
    for seed in range(200):
        (table,) = (published := listed.publish(drawn(listed, records, seed))).tables
        chosen = NAMES.index(published.facts["chosen"])
        np.testing.assert_allclose(
            table.columns["share"], np.array(SHARES[chosen]) / sum(SHARES[chosen])
        )
        missed += scores[chosen] - scores.min() > listed.excess
    assert missed <= most_failures(200, 0.1)
    assert listed.excess == pytest.approx((2 * math.log(40) + 1) / 60)


def test_functions_that_do_not_fit_the_cells_are_refused():
    facts = "f", AGES, 9, Budget.of("1")
    for shares, said in [
        (((1, 1, 1),), "state at least two"),
        (((1, 1, 1), (1, 1)), "functions.young: state a number for each of the 3 cells of age"),
        (((1, 1, 1), (1, 1, -1)), "functions.young"),
        (((0, 0, 0), (1, 1, 1)), "functions.even"),
    ]:
        with pytest.raises(ValueError, match=said):
            ListedFunction(*facts, NAMES[: len(shares)], shares)
    with pytest.raises(ValueError, match="must be numeric"):
        ListedFunction("f", Domain((Categories("c", "abc"),)), 9, Budget.of("1"), NAMES, SHARES)
