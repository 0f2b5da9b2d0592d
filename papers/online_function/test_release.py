"""A density at listed points: the answers of a process asked one by one, at the price of one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.line.mechanism import affordable
from dpcore.sampling.source import SeededSource
from papers.online_function.release import AskedFunction
from tests.chance import FALSE_ALARM
from tests.dpcore.releases.contract import drawn, opened, tally_of

SHARE = Budget.of("1", "1e-6")
LINE = Domain((Grid("x", 0.0, 10.0, 200),))
SQUARE = Domain((Grid("x", 0.0, 10.0, 40), Grid("y", -1.0, 1.0, 20)))
POINTS = ((2.0,), (9.0,), (2.0,), (2.5,), (0.0,))


def asked(points=POINTS, domain=LINE, kernel="gaussian", rows=400) -> AskedFunction:
    return AskedFunction("a", domain, rows, SHARE, kernel, (0.1,) * len(domain.axes), points)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_answers_without_noise_are_the_kernel_density(kernel):
    cells = np.repeat([30, 60, 150], [100, 200, 100])
    release = asked(kernel=kernel)
    exact = release.statistic(tally_of(LINE, cells))
    quiet = replace(release.mechanism, variance=release.mechanism.variance / 10**12)
    table = release.publish(quiet.draw(exact._statistic, SeededSource(1))).tables[0].columns
    bump = release.online.kernels[0]
    places = (cells + 0.5) / 200
    expected = [(bump.bump(x / 10, places) * bump.height).mean() / 10 for x in table["x"].tolist()]
    np.testing.assert_allclose(table["estimate"], expected, atol=1e-4)


def test_a_point_that_is_listed_twice_has_one_answer_and_costs_nothing_more():
    release = asked()
    assert release.mechanism.size == 4
    table = release.publish(drawn(release, [50] * 400)).tables[0].columns
    assert table["estimate"][0] == table["estimate"][2]
    once = asked(((2.0,),))
    assert affordable(release.mechanism.event, SHARE)
    assert release.mechanism.stddev == pytest.approx(once.mechanism.stddev, rel=1e-4)


@pytest.mark.slow
def test_errors_have_the_stated_law_and_neither_two_thirds_nor_three_halves_of_it():
    release = asked(((2.0, 0.0), (9.0, 0.5)), SQUARE)
    table = tally_of(SQUARE, [300] * 400)
    exact = opened(release, table)
    middle = release.answers(replace(drawn(release, table), values=exact))
    draws = np.array([release.answers(drawn(release, table, seed)) for seed in range(400)])
    off = (draws - middle).ravel() / release._stddev
    for factor, fits in ((1, True), (2 / 3, False), (3 / 2, False)):
        chance = stats.kstest(off / factor, "norm").pvalue
        assert chance > FALSE_ALARM if fits else chance < 1e-6


def test_points_that_do_not_fit_are_refused():
    for points, said in [
        ((), "state at least one"),
        (((1.0, 2.0),), "one number for each column"),
        (((11.0,),), r"x must lie in \[0, 10\]"),
    ]:
        with pytest.raises(ValueError, match=said):
            asked(points)
