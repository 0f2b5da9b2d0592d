"""Single counts: what is counted, what is answered, and intervals that hold the truth."""

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.counts.count import Count
from dpcore.sampling.source import SeededSource
from papers.minimax_count.release import MinimaxCount
from papers.minimax_count.table import TOTAL
from tests.dpcore.releases.contract import opened, repeated_draws, tally_of

PLACE = Domain((Categories("place", ("a", "b", "c"), nullable=True),))
RECORDS = np.repeat([0, 1, 2, 3], (4, 3, 2, 1))


def test_records_of_the_counted_cells_are_counted_and_nulls_are_not():
    for release in (
        Count("c", PLACE, 10, Budget.of("1"), (0, 2)),
        MinimaxCount("c", PLACE, 10, Budget.of("1"), (0, 2)),
    ):
        assert opened(release, RECORDS).tolist() == [6]
        assert opened(release, [1] * 10).tolist() == [0]


@pytest.mark.parametrize("counted", [(), (0, 1, 2, 3)])
def test_a_condition_that_says_nothing_is_refused(counted):
    with pytest.raises(ValueError, match="condition: must be true for some values"):
        Count("c", PLACE, 10, Budget.of("1"), counted)


def test_a_prior_draws_the_answer_and_much_budget_makes_it_the_noisy_count():
    def answer(alpha: str, proportion: float | None, noisy: int) -> int:
        release = Count("c", PLACE, 1000, Budget.of(alpha), (0,), "absolute", proportion)
        (table,) = release.publish(Noisy(np.array([noisy]))).tables
        assert table.columns["noisy_count"].tolist() == [noisy]
        return int(table.columns["count"][0])

    assert answer("1", None, 400) == 400
    assert answer("0.01", 0.5, 400) > 480
    assert answer("100", 0.5, 400) == 400
    assert answer("1", None, -7) == answer("1", None, 0) in (0, 1)


@pytest.mark.parametrize("loss", ["absolute", "squared", "zero-one"])
def test_the_stated_loss_of_a_bayes_answer_is_not_exceeded(loss):
    release = Count("c", PLACE, 40, Budget.of("0.5"), (0,), loss)
    draws = repeated_draws(release, [0] * 20 + [1] * 20, 4000, SeededSource(1))
    answers = np.array([release._answer(int(z)) for z in draws[:, 0]])
    apart = np.abs(answers - 20)
    mean = {"absolute": apart, "squared": apart**2, "zero-one": apart > 0}[loss].mean()
    assert mean <= release.expected_error()[0].value * 1.1


@pytest.mark.parametrize("beta", ["0", "0.01"])
def test_a_minimax_answer_has_the_law_of_its_table_and_an_interval_that_holds(beta):
    release = MinimaxCount("c", PLACE, 10, Budget.of("1", beta), (0,))
    chances = np.array(release.mechanism.table) / TOTAL
    for count in (0, 4, 10):
        tally = tally_of(PLACE, [0] * count + [1] * (10 - count))
        draws = repeated_draws(release, tally, 20_000, SeededSource(2))[:, 0].astype(int)
        np.testing.assert_allclose(
            np.bincount(draws, minlength=11) / 20_000, chances[count], atol=0.02
        )
    held = [
        sum(
            chances[j, i]
            for i in range(11)
            if release.interval(i)[0] <= j <= release.interval(i)[1]
        )
        for j in range(11)
    ]
    assert min(held) >= 0.9
    (stated,) = release.expected_error()
    risks = (chances * np.abs(np.subtract.outer(range(11), range(11)))).sum(axis=1)
    assert stated.value == pytest.approx(risks.max())
