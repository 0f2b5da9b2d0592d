"""The private kernel regression: what it learns, its noise, and what is published of it."""

import math

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.releases.machines.features import scaled_positions
from dpcore.releases.machines.regression import Regression
from tests.dpcore.releases.contract import drawn

SHARE = Budget.of("1", "1e-6")
AGE = Grid("age", 18.0, 90.0, 72, integer=True)
SEX = Categories("sex", ("F", "M"), nullable=True)
PAY = Grid("pay", -1000.0, 9000.0, 100)
DOMAIN = Domain((AGE, SEX, PAY))


def regression(rows: int = 400, regularisation: float = 0.05) -> Regression:
    return Regression("r", DOMAIN, rows, SHARE, (0.4, 1.0), regularisation, 24, 0.1)


def records(rows: int = 400) -> np.ndarray:
    """Pay rises and falls with age, and is 2000 higher for M."""
    random = np.random.default_rng(3)
    ages, sexes = random.integers(0, 72, rows), random.integers(0, 3, rows)
    pay = 3000 * np.sin(ages / 24) + 2000 * (sexes == 1) + 1000 + random.normal(0, 300, rows)
    codes = np.clip((pay + 1000) / 100, 0, 99).astype(int)
    return DOMAIN.pack(np.stack([ages, sexes, codes], axis=1))


def points_at(domain: Domain, codes: np.ndarray) -> np.ndarray:
    """The scaled positions of cells of the features, (k, d)."""
    axes = zip(domain.axes, codes.T, strict=False)
    return np.column_stack([scaled_positions(axis)[of_axis] for axis, of_axis in axes])


def test_a_machine_with_little_noise_predicts_the_target():
    table = np.repeat(records(), 300)
    release = Regression("r", DOMAIN, len(table), Budget.of("8", "1e-3"), (0.4, 1.0), 1e-4, 24, 0.1)
    noisy = drawn(release, table, 2)
    codes = DOMAIN.unpack(records())
    points = points_at(DOMAIN, codes[:, :2])
    predicted = -1000 + 10_000 * (release.decide(noisy, points) + 0.5)
    error = np.abs(predicted - (100 * codes[:, 2] - 950)).mean()
    assert error < 500
    assert np.abs(np.mean(100 * codes[:, 2] - 950) - (100 * codes[:, 2] - 950)).mean() > 1000


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (Grid("pay", 0.0, 1.0, 9, nullable=True), "pay may be null"),
        (Categories("pay", ("low", "high")), "must be a column of numbers"),
        (Bins("pay", (0.0, 1.0, 2.0)), "is binned"),
    ],
)
def test_targets_that_are_no_numbers_are_refused(target: object, text: str):
    with pytest.raises(ValueError, match=text):
        Regression("r", Domain((AGE, target)), 10, SHARE, (0.5,))


@pytest.mark.parametrize("regularisation", [0.0, 1e-9, math.nan])
def test_too_little_regularisation_is_refused_before_anything_is_read(regularisation: float):
    with pytest.raises(ValueError, match="regularisation: must be at least"):
        regression(regularisation=regularisation)
