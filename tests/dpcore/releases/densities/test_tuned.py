"""Densities and functions at a bandwidth that is drawn first, and paid from their share."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget, ShareWeight
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import PrivacyLineError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import Staged
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.densities.tuned import CHOSEN, RUNGS, TunedDensity
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import drawn, tally_of

DOMAIN = Domain((Grid("x", 0.0, 10.0, 500),))
ROWS = 5000
SHARE = Budget.of("2", "1e-6")


def density(share: Budget = SHARE, smallest: float = 0.01) -> TunedDensity:
    smooth = SpectralDensity("d", DOMAIN, ROWS, share, (smallest,))
    return TunedDensity("d", DOMAIN, ROWS, share, smooth, (ShareWeight(1, 0), ShareWeight(3, 1)))


def normal_records(stddev: float = 1.0) -> Tally:
    quantiles = stats.norm(5, stddev).ppf((np.arange(ROWS) + 0.5) / ROWS)
    return tally_of(DOMAIN, np.clip(quantiles * 50, 0, 499).astype(int))


def test_the_shares_of_both_steps_add_up_to_that_of_the_release():
    release = density()
    assert release.choice.share == Budget.of("0.5")
    assert release.rest == Budget.of("1.5", "1e-6")
    event = release.mechanism.event
    assert (event.choice, event.choice_alpha, event.alpha) == ("exponential", Fraction(1, 2), 1.5)
    pure = replace(
        release,
        share=Budget.of(2),
        smooth=BinnedDensity("d", DOMAIN, ROWS, SHARE, (0.01,)),
        parts=(ShareWeight(1, 0), ShareWeight(3, 0)),
    )
    assert pure.mechanism.event.pure_alpha == 2


@pytest.mark.parametrize("stddev", [0.8, 1.6])
def test_the_bandwidth_is_silverman_s_within_half_a_rung(stddev: float):
    release = density()
    settled, _ = release.settled(drawn(release, normal_records(stddev)))
    rule = 1.06 * stddev / 10 * ROWS**-0.2
    assert settled.bandwidths[0] == pytest.approx(rule, rel=2 ** (0.5 / RUNGS) - 1 + 0.03)
    rungs = RUNGS * np.log2(settled.bandwidths[0] / 0.01)
    assert rungs == pytest.approx(round(rungs))


def test_what_is_published_is_the_release_at_the_chosen_bandwidth_and_the_choice():
    release, noisy = density(), drawn(density(), normal_records())
    settled, second = release.settled(noisy)
    assert settled.share == release.rest
    assert len(second.values) == settled.mechanism.size
    assert not noisy.values[CHOSEN + settled.mechanism.size :].any()
    published, plain = release.publish(noisy), settled.publish(second)
    for table, other in zip(published.tables, plain.tables, strict=True):
        for name, column in table.columns.items():
            np.testing.assert_array_equal(column, other.columns[name])
    choice = published.facts["bandwidth_choice"]
    assert choice["spent"]["alpha"] == "1/2"
    assert choice["x_from"][0] == pytest.approx(5 - 0.674, abs=0.1)
    x = {"x": np.array([2.0, 5.0])}
    np.testing.assert_array_equal(
        release.evaluate(noisy, x)["estimate"], settled.evaluate(second, x)["estimate"]
    )
    _, codes = release.sample(noisy, 200)
    assert abs(np.mean(codes) - 250) < 10


def test_a_step_that_costs_more_than_its_share_is_stopped_at_the_line():
    """The line is crossed three times: by the whole, and by either step."""

    class Dear:
        """Claims little and draws at ten times as much."""

        choice, rest = density().choice, density().rest

        def after(self, choice: Noisy) -> SpectralDensity:
            return SpectralDensity("d", DOMAIN, ROWS, Budget.of("15", "1e-6"), (0.1,))

    mechanism = Staged(DOMAIN.size, Dear(), DOMAIN, CHOSEN, 1000)
    with pytest.raises(PrivacyLineError, match="no price within its share"):
        perturb(density().statistic(normal_records()), mechanism, SHARE, SeededSource(1))


def test_records_of_a_function_follow_it_at_the_drawn_bandwidth():
    smooth = SmoothFunction("f", DOMAIN, ROWS, SHARE, "gaussian", (0.02,), (200,))
    parts = (ShareWeight(1, 0), ShareWeight(1, 1))
    release = TunedDensity("f", DOMAIN, ROWS, SHARE, smooth, parts)
    assert release.statistics == smooth.statistics
    noisy = drawn(release, normal_records())
    assert 0.02 <= release.settled(noisy)[0].bandwidths[0] < 1
    _, codes = release.sample(noisy, 200)
    assert abs(np.mean(codes) - 250) < 10


SQUARE = Domain((Grid("x", 0.0, 10.0, 500), Grid("y", 0.0, 1.0, 40)))


def test_two_columns_have_a_bandwidth_each_and_the_density_that_follows():
    smooth = SpectralDensity("d", SQUARE, ROWS, SHARE, (0.02, 0.02))
    release = replace(density(), domain=SQUARE, smooth=smooth)
    generator = np.random.default_rng(2)
    cells = np.clip(generator.normal((250, 20), (50, 2), (ROWS, 2)), 0, (499, 39)).astype(int)
    noisy = drawn(release, SQUARE.pack(cells))
    settled, second = release.settled(noisy)
    expected = np.array([0.1, 0.05]) * ROWS ** (-1 / 6)
    np.testing.assert_allclose(settled.bandwidths, np.maximum(expected, 0.02), rtol=0.12)
    assert len(second.values) == settled.mechanism.size
    published = release.publish(noisy)
    assert published.facts["bandwidths"].keys() == {"x", "y"}
    assert len(published.facts["bandwidth_choice"]["y_from"]) == 2


def test_three_columns_and_other_neighbours_are_refused():
    cube = Domain(tuple(Grid(name, 0.0, 1.0, 9) for name in "xyz"))
    with pytest.raises(ValueError, match="one or two columns"):
        replace(density(), domain=cube)
    with pytest.raises(ValueError, match="a private bandwidth is private only"):
        replace(density(), adjacency=Adjacency("add-remove"))
