"""Points that stand for records: sums, least squares and errors are those of the records themselves."""

import numpy as np
import pytest

from dpcore.arrays import Floats
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.post.points import Points
from dpcore.releases.numbers.products import BITS, Products

AXES = (Grid("x", 0.0, 10.0, 10, integer=True), Grid("y", 0.0, 1.0, 64))
PRODUCTS, DOMAIN = Products(AXES), Domain(AXES)


def records(rows: int = 3000) -> np.ndarray:
    generator = np.random.default_rng(0)
    x = generator.integers(0, 10, rows)
    y = 20 + 3 * x + (1 + x) * generator.normal(size=rows) / 2
    return np.column_stack([x, np.clip(y, 0, 63).astype(int)])


def points(codes: np.ndarray, stddev: float = 0.0) -> Points:
    sums = np.array(PRODUCTS.sums(Tally.of(DOMAIN, DOMAIN.pack(codes)))) * 2.0**-BITS
    return Points(PRODUCTS.features(), sums, np.full(len(sums), stddev))


def at_points() -> tuple[Floats, Floats]:
    places = PRODUCTS.places()
    return np.column_stack([np.ones(PRODUCTS.size), places["x"]]), places["y"]


def of_records(codes: np.ndarray) -> tuple[Floats, Floats]:
    return np.column_stack([np.ones(len(codes)), codes[:, 0]]), (codes[:, 1] + 0.5) / 64


def test_sums_of_polynomials_are_those_over_the_records():
    found, codes = points(records()), records()
    (terms, response), (x, y) = at_points(), of_records(codes)
    for i, j in [(0, 0), (1, 1), (4, 0), (0, 4), (2, 2), (3, 1)]:
        exact = np.sum(x[:, 1] ** i * y**j)
        assert found.weights @ (terms[:, 1] ** i * response**j) == pytest.approx(exact, rel=1e-5)


def test_least_squares_and_its_sampling_errors_are_those_of_the_records():
    codes = records()
    found = points(codes).regression(*at_points())
    x, y = of_records(codes)
    inverse = np.linalg.inv(x.T @ x)
    coefficients = inverse @ x.T @ y
    scores = x * (y - x @ coefficients)[:, None]
    sandwich = inverse @ scores.T @ scores @ inverse
    assert found.values == pytest.approx(coefficients, rel=1e-4)
    assert found.sampling == pytest.approx(np.sqrt(np.diag(sandwich)), rel=1e-2)
    assert found.privacy == pytest.approx([0, 0])
    usual = np.sqrt(np.diag(inverse) * np.mean((y - x @ coefficients) ** 2))
    assert abs(found.sampling[0] / usual[0] - 1) > 0.1  # the spread is not the same everywhere


def test_the_privacy_error_of_a_coefficient_is_the_spread_over_noise():
    stddev, exact, generator = 5.0, points(records()), np.random.default_rng(1)
    drawn = []
    for _ in range(400):
        sums = exact.sums + generator.normal(0, stddev, len(exact.sums))
        drawn.append(Points(exact.features, sums, exact.sums * 0 + stddev).regression(*at_points()))
    spread = np.std([each.values for each in drawn], axis=0)
    stated = np.median([each.privacy for each in drawn], axis=0)
    assert spread == pytest.approx(stated, rel=0.15)


def test_moments_that_no_records_have_are_refused():
    exact = points(records())
    upside_down = Points(exact.features, -exact.sums, exact.stddev)
    with pytest.raises(ValueError, match="noise hides how the terms vary together"):
        upside_down.regression(*at_points())
