"""Smooth functions: the kernel density behind the noise, the noise, and what is published."""

import math

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.kernels import KernelName
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import drawn, grid, opened, repeated_draws, tally_of

SHARE = Budget.of("1", "1e-6")
ROWS = 500
SHAPES = [
    ((200,), (0.05,), (100,)),
    ((30, 40), (0.2, 0.3), (12, 14)),
    ((9, 10, 8), (0.3,) * 3, (6,) * 3),
]
every_kernel = pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
every_shape = pytest.mark.parametrize(("sizes", "bandwidths", "points"), SHAPES)


def function(kernel: KernelName, sizes: tuple, bandwidths: tuple, points: tuple, rows: int = ROWS):
    domain = Domain(tuple(grid(f"x{i}", size) for i, size in enumerate(sizes)))
    return SmoothFunction("f", domain, rows, SHARE, kernel, bandwidths, points)


def records(release: SmoothFunction) -> np.ndarray:
    return np.random.default_rng(1).integers(0, release.domain.size, ROWS)


def noiseless(release: SmoothFunction) -> Noisy:
    return Noisy(opened(release, records(release)))


def kernel_density(release: SmoothFunction, points: np.ndarray) -> np.ndarray:
    """(k,) from the definition, at scaled points (k, d)."""
    codes = release.domain.unpack(records(release))
    product = np.ones((len(points), ROWS))
    for i, (size, h) in enumerate(zip(release.domain.shape, release.bandwidths, strict=True)):
        away = (points[:, i, None] - (codes[:, i] + 0.5) / size) / h
        product *= np.exp(-0.5 * away**2) / (math.sqrt(2 * math.pi) * h)
    return product.mean(axis=1)


def grid_points(release: SmoothFunction) -> np.ndarray:
    lines = [(np.arange(m) + 0.5) / m for m in release.points]
    return np.stack([axis.ravel() for axis in np.meshgrid(*lines, indexing="ij")], axis=1)


@every_kernel
@every_shape
def test_without_noise_the_function_is_the_kernel_density(kernel, sizes, bandwidths, points):
    release = function(kernel, sizes, bandwidths, points)
    estimate = release.on_grid(noiseless(release)).ravel()
    exact = kernel_density(release, grid_points(release))
    # Records are rounded to 22, 15 or 10 bits along each axis.
    tolerance = (1e-6, 1e-4, 3e-3)[len(sizes) - 1]
    np.testing.assert_allclose(estimate, exact, atol=tolerance * exact.max())


@every_kernel
@every_shape
def test_the_noise_is_the_gaussian_process_with_the_stated_covariance(
    kernel, sizes, bandwidths, points
):
    """s^2 K and not s K: variances within 10 per cent, correlations within 0.12, over 2000 draws."""
    release = function(kernel, sizes, bandwidths, points)
    tally = tally_of(release.domain, records(release))
    draws = repeated_draws(release, tally, 2000, SeededSource(3)).astype(np.int64)
    clean = release.on_grid(noiseless(release))
    errors = np.stack([release.on_grid(Noisy(draw)) - clean for draw in draws]).reshape(2000, -1)
    chosen = np.linspace(0, errors.shape[1] - 1, 30).astype(int)
    x = grid_points(release)[chosen]
    expected = np.ones((30, 30))
    for i, h in enumerate(bandwidths):
        away = np.abs(x[:, i, None] - x[None, :, i]) / h
        expected *= np.exp(-0.5 * away**2) if kernel == "gaussian" else np.exp(-away)
    np.testing.assert_allclose(errors.std(axis=0), release.stddev, rtol=0.1)
    np.testing.assert_allclose(np.corrcoef(errors[:, chosen].T), expected, atol=0.12)
    statement, whole = release.expected_error()
    assert statement.value == pytest.approx(release.stddev)
    assert whole.value > release.stddev


@pytest.mark.slow
@every_kernel
def test_the_published_table_is_the_function_in_units_of_the_columns(kernel: KernelName):
    domain = Domain((Grid("x", -3.0, 5.0, 60), Grid("y", 18.0, 90.0, 72, integer=True)))
    release = SmoothFunction("f", domain, ROWS, SHARE, kernel, (0.2, 0.3), (20, 16))
    noisy = drawn(release, records(release), 4)
    published = release.publish(noisy)
    columns, facts = published.tables[0].columns, published.facts
    unit = 1 / (8 * 72)
    np.testing.assert_allclose(columns["estimate"], release.on_grid(noisy).ravel() * unit)
    np.testing.assert_allclose(columns["standard_error"], release.stddev * unit)
    half = (columns["upper_90"] - columns["lower_90"]) / 2 - columns["left_out_bound"]
    np.testing.assert_allclose(half, 1.6448536 * columns["standard_error"])
    wide = columns["upper_simultaneous_90"] - columns["estimate"] - columns["left_out_bound"]
    np.testing.assert_allclose(wide, facts["simultaneous_factor"] * columns["standard_error"])
    assert 1.8 < facts["simultaneous_factor"] < 4.5

    at = np.array([[-1.0, 40.0], [4.0, 80.0], [0.123, 25.5]])
    away = [
        (at[:, i, None] - columns[name][None, :]) / facts["bandwidths"][name]
        for i, name in enumerate(("x", "y"))
    ]
    if kernel == "gaussian":
        weights = np.exp(-0.5 * (away[0] ** 2 + away[1] ** 2))
    else:
        weights = np.exp(-np.abs(away[0]) - np.abs(away[1]))
    scaled = (at - [-3, 17.5]) / [8, 72]  # a whole number is the middle of its cell
    between = release.stated_at(noisy, scaled)["estimate"]
    np.testing.assert_allclose(weights @ columns["coefficient"], between * unit, rtol=1e-6)


@every_shape
def test_the_sum_over_records_is_exact_for_few_and_for_very_many(sizes, bandwidths, points):
    """Against Python's own whole numbers; large counts leave the range of floating point."""
    release = function("gaussian", sizes, bandwidths, points, rows=2**33)
    cells = np.sort(np.random.default_rng(8).choice(release.domain.size, 5, replace=False))
    for counts in (np.array([1, 2, 3, 4, 5]), np.array([2**32, 1, 2**31 + 1, 7, 2**30])):
        found = opened(release, Tally(release.domain, cells, counts))
        expected = np.zeros(release.points, dtype=object)
        for code, count in zip(release.domain.unpack(cells), counts, strict=True):
            vectors = [u[c].astype(object) for u, c in zip(release._vectors, code, strict=True)]
            product = vectors[0] * int(count)
            for vector in vectors[1:]:
                product = np.multiply.outer(product, vector)
            expected += product
        assert found.tolist() == expected.ravel().tolist()


@pytest.mark.slow
def test_an_empty_table_and_a_single_point_are_released():
    for kernel in ("gaussian", "exponential"):
        release = function(kernel, (5,), (0.4,), (1,), rows=1)
        for table in ([], [3]):
            tally = tally_of(release.domain, np.array(table, dtype=np.int64))
            noisy = drawn(release, tally)
            assert len(release.publish(noisy).tables[0].columns["estimate"]) == 1
        assert not opened(release, np.empty(0, dtype=np.int64)).any()


@every_kernel
@pytest.mark.parametrize(
    ("sizes", "bandwidths", "points"),
    [
        ((20,), (0.05,), (80,)),
        ((50,), (0.3,), (12,)),
        ((12, 9), (0.2, 0.3), (20, 12)),
        ((9,), (0.1,), (5,)),
    ],
)
def test_the_bound_holds_for_records_at_either_end_of_every_cell(kernel, sizes, bandwidths, points):
    """Records at one end of a cell, all at one place or spread: the worst that rounding can do."""
    release = function(kernel, sizes, bandwidths, points)
    x = grid_points(release)
    spread = np.random.default_rng(9).integers(0, release.domain.size, 60)
    for cells in [*np.arange(0, release.domain.size, 5)[:, None], spread]:
        codes = release.domain.unpack(np.asarray(cells))
        tally = tally_of(release.domain, np.repeat(cells, ROWS // len(cells) + 1)[:ROWS])
        weights = np.repeat(np.arange(len(cells)), ROWS // len(cells) + 1)[:ROWS]
        clean = release.stated(Noisy(opened(release, tally)), 0.0)
        for end in (0, 1):
            product = np.ones((len(x), len(cells)))
            for i, (size, h) in enumerate(zip(sizes, bandwidths, strict=True)):
                away = (x[:, i, None] - (codes[:, i] + end) / size) / h
                product *= np.exp(-0.5 * away**2) / (math.sqrt(2 * math.pi) * h)
            exact = product[:, weights].mean(axis=1)
            assert np.all(np.abs(clean["estimate"] - exact) <= clean["left_out_bound"] + 1e-9)


@pytest.mark.parametrize(
    ("axes", "bandwidths", "points", "text"),
    [
        ((grid("x", 9),), (0.1, 0.1), (9,), "one number"),
        (tuple(grid(f"x{i}", 9) for i in range(4)), (0.1,) * 4, (9,) * 4, "one to 3 columns"),
        ((Categories("c", ("a", "b")),), (0.1,), (9,), "integer or continuous"),
        ((grid("x", 9),), (0.001,), (9,), "between 0.002 and 1"),
        ((grid("x", 9),), (0.1,), (0,), "between 1 and 1024"),
        ((grid("x", 9), grid("y", 9)), (0.1, 0.1), (500, 500), "more than 65536"),
        ((grid("x", 2**18),), (0.1,), (512,), "too many for 512"),
    ],
)
def test_what_cannot_be_released_is_refused(axes, bandwidths, points, text):
    with pytest.raises(ValueError, match=text):
        SmoothFunction("f", Domain(axes), 10, SHARE, "gaussian", bandwidths, points)
