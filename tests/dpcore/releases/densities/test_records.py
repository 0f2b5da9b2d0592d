"""Records drawn from functions and from densities by group are distributed as these say."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.parts import DensityOfParts
from tests.dpcore.releases.contract import drawn

PAY, AGE = Grid("pay", 0.0, 100.0, 250, nullable=True), Grid("age", 18.0, 90.0, 72, integer=True)
SEX = Categories("sex", ("F", "M", "X"))
ROWS, MUCH = 4000, Budget.of("50", "1e-6")


def normal(axis: Grid, mean: float, seed: int, rows: int = ROWS) -> np.ndarray:
    cells = np.random.default_rng(seed).normal(mean * axis.cells, axis.cells / 12, rows)
    return np.clip(cells, 0, axis.cells - 1).astype(np.int64)


@pytest.mark.parametrize("points", [(40, 30), (300, 90)], ids=["coarser", "finer"])
def test_records_of_a_function_follow_it_where_it_is_positive(points):
    domain = Domain((PAY, AGE))
    release = SmoothFunction("f", domain, ROWS, MUCH, "gaussian", (0.1, 0.1), points)
    pay = np.append(normal(PAY, 0.3, 1, ROWS - 100), np.full(100, PAY.size - 1))
    noisy = drawn(release, domain.pack(np.stack([pay, normal(AGE, 0.6, 2)], axis=1)))
    records, codes = release.sample(noisy, 20_000)
    assert records.shape == (250, 72)
    assert codes.min() >= 0
    for place, (axis, mean) in enumerate([(PAY, 0.3), (AGE, 0.6)]):
        found = np.bincount(codes[:, place], minlength=axis.size) / 20_000
        counts, error = release.supported_margin(noisy, (axis.name,))
        assert np.isnan(error)
        assert len(counts) == axis.size
        assert counts.sum() == pytest.approx(ROWS)
        np.testing.assert_allclose(np.cumsum(found), np.cumsum(counts) / ROWS, atol=0.03)
        assert abs(codes[:, place].mean() / axis.cells - mean) < 0.03
    both, _ = release.supported_margin(noisy, ("pay", "age"))
    one, _ = release.supported_margin(noisy, ("pay",))
    np.testing.assert_allclose(both.reshape(251, 72).sum(axis=1), one)


def test_records_of_densities_by_group_are_as_many_and_as_spread_as_their_groups():
    age = replace(AGE, nullable=True)
    domain = Domain((SEX, age))
    density = BinnedDensity("d", Domain((age,)), ROWS, MUCH, (0.1,))
    release = DensityOfParts("d", domain, ROWS, MUCH, density)
    sex = np.repeat([0, 1], [3000, 1000])
    ages = np.concatenate([normal(AGE, 0.3, 3, 3000), normal(AGE, 0.7, 4, 1000)])
    noisy = drawn(release, domain.pack(np.stack([sex, ages], axis=1)))
    records, codes = release.sample(noisy, 8000)
    assert [axis.name for axis in records.axes] == ["sex", "age"]
    np.testing.assert_allclose(np.bincount(codes[:, 0], minlength=3), [6000, 2000, 0], atol=60)
    means = [codes[codes[:, 0] == group, 1].mean() / 72 for group in (0, 1)]
    np.testing.assert_allclose(means, [0.3, 0.7], atol=0.03)
    by_sex, _ = release.supported_margin(noisy, ("sex",))
    np.testing.assert_allclose(by_sex, [3000, 1000, 0], atol=30)
    both, _ = release.supported_margin(noisy, ("sex", "age"))
    assert both.reshape(3, 73)[:, 72].sum() == 0  # null, which no record has
    np.testing.assert_allclose(both.reshape(3, 73).sum(axis=1), by_sex)


@pytest.mark.parametrize("budget", ["50", "0.5"])
def test_mass_beyond_the_bounds_and_noise_become_no_even_floor(budget):
    domain, share = Domain((AGE,)), Budget.of(budget, "1e-6")
    release = SmoothFunction("f", domain, ROWS, share, "gaussian", (0.05,), (80,))
    # Half of the mass of the kernels at the lower bound is beyond it; the upper half is empty.
    ages = np.concatenate([np.zeros(ROWS // 2, dtype=np.int64), normal(AGE, 0.2, 5, ROWS // 2)])
    noisy = drawn(release, domain.pack(ages[:, None]))
    _, codes = release.sample(noisy, 20_000)
    found = np.bincount(codes[:, 0], minlength=AGE.cells) / 20_000
    assert found[AGE.cells * 3 // 5 :].sum() < 0.01
    if budget == "50":
        values = np.maximum(release.on_grid(noisy), 0)
        edges = np.linspace(0, 1, 9)
        wanted = np.add.reduceat(values, np.arange(0, 80, 10)) / values.sum()
        places = (codes[:, 0] + 0.5) / AGE.cells
        assert np.abs(np.histogram(places, edges)[0] / 20_000 - wanted).sum() / 2 < 0.03
