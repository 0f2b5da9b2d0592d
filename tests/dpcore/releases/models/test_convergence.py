"""Coefficients that tend to infinity have no interval; those of other models keep theirs."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpcore.domain.axes import Categories, Grid
from tests.chance import FALSE_ALARM
from tests.dpcore.releases.models.test_model import coverage

AXES = (
    Grid("age", 18.0, 90.0, 72),
    Categories("sex", ("f", "m")),
    Categories("works", (False, True)),
)
WRITTEN = "{works == True} ~ age + sex"


def survey(share, random, people=5_000):
    """People of any age and sex, who work with the chance ``share(age, sex)``."""
    age, sex = random.integers(0, 72, people), random.integers(0, 2, people)
    works = random.random(people) < share(age + 18, sex)
    return np.column_stack([age, sex, works]).astype(int)


def logistic(slope, middle, of_men):
    return lambda age, sex: expit(slope * (age - middle) + of_men * sex)


def fits(share, alpha, truth=(0.0, 0.0, 0.0), surveys=30):
    return coverage(
        "binomial", AXES, WRITTEN, lambda random: survey(share, random), alpha, truth, surveys
    )


@pytest.mark.slow
@pytest.mark.parametrize("category", [0, 1])
def test_a_category_that_nobody_of_works_has_no_interval_and_age_keeps_its_own(category):
    """Its coefficient, or that of the base, is minus infinity; it had an interval from -6 to -4."""
    _, shown = fits(lambda age, sex: 0.3 * (sex != category), "20", surveys=15)
    assert shown[:, 2].sum() <= 2
    assert shown[:, 1].sum() >= 13


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ["2", "20"])
def test_an_interval_of_a_very_rare_answer_holds_if_it_is_given(alpha):
    truth = np.array([np.log(3 / 7), 0, np.log(0.001 / 0.999) - np.log(3 / 7)])
    held, shown = fits(lambda age, sex: np.where(sex == 0, 0.3, 0.001), alpha, truth)
    many = int(shown[:, 2].sum())
    assert binom.cdf(int((held & shown)[:, 2].sum()), many, 0.95) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "slope"), [("1", 2.0), ("2", 0.8), ("20", 0.8), ("20", 50.0)])
def test_an_outcome_that_age_almost_determines_gives_no_intervals(alpha, slope):
    """A slope of 0.8 came out as 0.35 with an error of 0.03."""
    _, shown = fits(logistic(slope, 62, 0.5), alpha, surveys=15)
    assert shown.sum() <= 4


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ["4", "10"])
def test_intervals_of_steep_slopes_hold_if_they_are_given(alpha):
    """Nearly all of them missed a slope of 0.6, and half of them one of 0.32."""
    for slope in (0.3, 0.6):
        truth = np.array([-slope * 54, slope, 0.5])
        held, shown = coverage(
            "binomial",
            AXES,
            WRITTEN,
            lambda random, slope=slope: survey(logistic(slope, 54, 0.5), random, 20_000),
            alpha,
            truth,
        )
        many = int(shown[:, 1].sum())
        assert binom.cdf(int((held & shown)[:, 1].sum()), many, 0.95) > FALSE_ALARM


@pytest.mark.slow
def test_intervals_of_others_hold_where_an_answer_is_very_rare_in_the_base():
    """A third of them missed: their errors were those of the base before the last steps."""

    axes = (AXES[0], Categories("region", ("u", "v", "w")), AXES[2])
    of_region = np.array([0.0, 4.3, 4.6])

    def people(random):
        age, region = random.integers(0, 72, 50_000), random.choice(3, 50_000, p=[0.1, 0.6, 0.3])
        share = expit(-5.3 + of_region[region])
        return np.column_stack([age, region, random.random(len(age)) < share]).astype(int)

    truth = np.array([-5.3, 0.0, *of_region[1:]])
    held, shown = coverage(
        "binomial", axes, "{works == True} ~ age + region", people, "2", truth, 40
    )
    assert shown[:, 2].sum() >= 20
    missed = int((shown & ~held)[:, 2].sum())
    assert binom.sf(missed - 1, int(shown[:, 2].sum()), 0.05) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "middle"), [(0.03, 50), (0.15, 50), (0.03, 110)])
def test_other_models_keep_their_intervals(slope, middle):
    truth = np.array([-slope * middle, slope, 0.5])
    held, shown = fits(logistic(slope, middle, 0.5), "2", truth)
    assert shown.mean() > 0.97
    for term in range(3):
        many = int(shown[:, term].sum())
        assert binom.cdf(int((held & shown)[:, term].sum()), many, 0.95) > FALSE_ALARM
