"""Densities and functions at a bandwidth that is drawn first, and paid from their share."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import affordable
from dpcore.line.statistic import ABSENT
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.densities.tuned import RUNGS, TunedDensity
from tests.dpcore.releases.contract import drawn, tally_of

DOMAIN = Domain((Grid("x", 0.0, 10.0, 500),))
ROWS = 5000
SHARE = Budget.of("2", "1e-6")


def density(share: Budget = SHARE, smallest: float = 0.01) -> TunedDensity:
    smooth = SpectralDensity("d", DOMAIN, ROWS, share, (smallest,))
    return TunedDensity("d", DOMAIN, ROWS, share, smooth, Fraction(1, 4))


def normal_records(stddev: float = 1.0) -> Tally:
    quantiles = stats.norm(5, stddev).ppf((np.arange(ROWS) + 0.5) / ROWS)
    return tally_of(DOMAIN, np.clip(quantiles * 50, 0, 499).astype(int))


def test_the_shares_of_both_steps_add_up_to_that_of_the_release():
    release = density()
    event = release.mechanism.event
    assert affordable(event, SHARE)
    assert not affordable(event, SHARE * Fraction(999, 1000))
    single = SpectralDensity("d", DOMAIN, ROWS, SHARE, (0.01,)).mechanism.variance
    assert event.again_scale == pytest.approx(single * 4 / 3, rel=1e-3)
    pure = replace(
        release, share=Budget.of(2), smooth=BinnedDensity("d", DOMAIN, ROWS, SHARE, (0.01,))
    )
    assert (pure.choice.share, pure.rest) == (Budget.of("0.5"), Budget.of("1.5"))
    assert pure.mechanism.event.pure_alpha == 2
    in_rho = replace(release, share=Budget(rho=Fraction(1, 2)))
    assert in_rho.choice.share == Budget(rho=Fraction(1, 8))
    assert affordable(in_rho.mechanism.event, in_rho.share)


@pytest.mark.parametrize("stddev", [0.8, 1.6])
def test_the_bandwidth_is_silverman_s_within_half_a_rung(stddev: float):
    release = density()
    settled, _ = release.settled(drawn(release, normal_records(stddev)))
    rule = 1.06 * stddev / 10 * ROWS**-0.2
    assert settled.bandwidths[0] == pytest.approx(rule, rel=2 ** (0.5 / RUNGS) - 1 + 0.03)
    rungs = RUNGS * np.log2(settled.bandwidths[0] / 0.01)
    assert rungs == pytest.approx(round(rungs))


@pytest.mark.slow
def test_what_is_published_is_the_release_at_the_chosen_bandwidth_and_the_choice():
    release, noisy = density(), drawn(density(), normal_records())
    settled, second = release.settled(noisy)
    assert settled.share == release.rest
    assert len(second.values) == settled.mechanism.size
    assert (noisy.values[release.chosen + settled.mechanism.size :] == ABSENT).all()
    published, plain = release.publish(noisy), settled.publish(second)
    for table, other in zip(published.tables, plain.tables, strict=True):
        for name, column in table.columns.items():
            np.testing.assert_array_equal(column, other.columns[name])
    choice = published.facts["bandwidth_choice"]
    assert choice["spent"] == release.choice.share.as_strings()
    assert choice["x_from"][0] == pytest.approx(5 - 0.674, abs=0.1)
    x = {"x": np.array([2.0, 5.0])}
    np.testing.assert_array_equal(
        release.evaluate(noisy, x)["estimate"], settled.evaluate(second, x)["estimate"]
    )
    _, codes = release.sample(noisy, 200)
    assert abs(np.mean(codes) - 250) < 10


def test_numbers_that_a_record_moves_further_than_the_noise_is_for_are_refused():
    narrow = SpectralDensity("d", DOMAIN, ROWS, SHARE, (0.01,))
    law = SpectralDensity("d", DOMAIN, ROWS, SHARE, (0.3,)).mechanism
    assert replace(narrow, bandwidths=(0.4,), law=law).mechanism.variance == law.variance
    with pytest.raises(PrivacyLineError, match="for a smaller sensitivity"):
        _ = replace(narrow, law=law).mechanism


def test_no_noise_is_drawn_for_a_smaller_sensitivity_than_that_of_the_drawn_bandwidth():
    smooth = SpectralDensity("d", DOMAIN, ROWS, SHARE, (0.02,))
    release, gaussian = (
        TunedDensity("d", DOMAIN, ROWS, SHARE, smooth, Fraction(1, 2)),
        SpectralDensity.gaussian,
    )

    def larger(self, size, squared):  # at every bandwidth but the smallest, for which the noise is
        return gaussian(self, size, squared * (4 if self.law else 1))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SpectralDensity, "gaussian", larger)
        with pytest.raises(PrivacyLineError, match="for a smaller sensitivity"):
            drawn(release, normal_records())


def test_records_of_a_function_follow_it_at_the_drawn_bandwidth():
    smooth = SmoothFunction("f", DOMAIN, ROWS, SHARE, "gaussian", (0.02,), (200,))
    release = TunedDensity("f", DOMAIN, ROWS, SHARE, smooth, Fraction(1, 2))
    assert release.statistics == smooth.statistics
    noisy = drawn(release, normal_records())
    assert 0.02 <= release.settled(noisy)[0].bandwidths[0] < 1
    _, codes = release.sample(noisy, 200)
    assert abs(np.mean(codes) - 250) < 10


SQUARE = Domain((Grid("x", 0.0, 10.0, 500), Grid("y", 0.0, 1.0, 40)))


@pytest.mark.slow
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


def test_three_columns_are_refused():
    cube = Domain(tuple(Grid(name, 0.0, 1.0, 9) for name in "xyz"))
    with pytest.raises(ValueError, match="one or two columns"):
        replace(density(), domain=cube)
