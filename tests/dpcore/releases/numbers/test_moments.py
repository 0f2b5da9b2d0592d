"""Moments: without noise they are those of the records, and with it their intervals hold."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.numbers.moments import Moments
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import opened

PAY, YEARS = Grid("pay", 0.0, 100.0, 1000), Grid("years", 0.0, 20.0, 20, integer=True)
TRADE = Categories("trade", ("farm", "mill", "shop"))
DOMAIN = Domain((PAY, YEARS, TRADE))
SHARE = Budget.of("1", "1e-6")


def records(rows: int, seed: int) -> np.ndarray:
    """Codes (rows, 3): pay rises with years, and its spread with it."""
    generator = np.random.default_rng(seed)
    years, trade = generator.integers(0, 20, rows), generator.choice(3, rows, p=(0.5, 0.3, 0.2))
    pay = 20 + 2 * years + 5 * trade + (3 + years / 2) * generator.normal(size=rows)
    return np.column_stack([np.clip(pay * 10, 0, 999).astype(int), years, trade])


def values(codes: np.ndarray) -> np.ndarray:
    return np.column_stack([(codes[:, 0] + 0.5) / 10, codes[:, 1]])


def tally(codes: np.ndarray) -> Tally:
    return Tally.of(DOMAIN, DOMAIN.pack(codes))


@pytest.fixture(scope="module")
def release() -> Moments:
    return Moments("m", DOMAIN, 4000, SHARE)


def rows_of(release: Moments, noisy: Noisy) -> dict[tuple, dict]:
    (table,) = release.publish(noisy).tables
    columns = {name: np.ma.asarray(each).tolist() for name, each in table.columns.items()}
    names = ("statistic", "column", "other", "category")
    keys = zip(*(columns[name] for name in names), strict=True)
    lines = zip(*columns.values(), strict=True)
    return {
        key: dict(zip(columns, line, strict=True)) for key, line in zip(keys, lines, strict=True)
    }


@pytest.mark.parametrize("adjacency", [Adjacency(), Adjacency("add-remove")])
def test_without_noise_estimates_are_those_of_the_records(release, adjacency):
    codes = records(4000, 1)
    release = replace(release, adjacency=adjacency)
    found = rows_of(release, Noisy(opened(release, tally(codes))))
    x = values(codes)
    assert found["mean", "pay", None, None]["estimate"] == pytest.approx(x[:, 0].mean())
    assert found["variance", "years", None, None]["estimate"] == pytest.approx(
        x[:, 1].var(), rel=1e-4
    )
    both = np.cov(x.T, bias=True)[0, 1]
    assert found["covariance", "pay", "years", None]["estimate"] == pytest.approx(both, rel=1e-4)
    mill = codes[:, 2] == 1
    assert found["share", "trade", None, "mill"]["estimate"] == pytest.approx(mill.mean(), rel=1e-4)
    mean = found["mean", "pay", "trade", "mill"]
    assert mean["estimate"] == pytest.approx(x[mill, 0].mean(), rel=1e-4)
    assert len(found) == 2 + 3 * (1 + 2) + 3


@pytest.mark.slow
def test_the_stated_noise_is_that_of_the_draws(release):
    exact = release.statistic(tally(records(4000, 2)))
    drawn = [
        rows_of(release, perturb(exact, release.mechanism, SHARE, SeededSource(seed)))
        for seed in range(60)
    ]
    for key in drawn[0]:
        spread = np.std([each[key]["estimate"] for each in drawn])
        stated = np.median([each[key]["privacy_error"] for each in drawn])
        assert 0.75 < spread / stated < 1.3, key


@pytest.mark.parametrize("rows", [1, 2])
def test_a_draw_of_hardly_any_records_publishes_without_numbers_that_are_not_finite(rows):
    for adjacency in (Adjacency(), Adjacency("add-remove")):
        release = Moments("m", DOMAIN, rows, SHARE, adjacency=adjacency)
        noisy = Noisy(np.zeros(release.mechanism.size, dtype=np.int64))
        for row in rows_of(release, noisy).values():
            assert row["reason"] or np.isfinite(row["estimate"])


def test_larger_tables_than_can_be_counted_are_cut():
    release = Moments("m", DOMAIN, 1, SHARE, adjacency=Adjacency("add-remove"))
    cells, counts = np.array([19, 59_999]), np.array([2**55, 2**55])
    found = opened(release, Tally(DOMAIN, cells, counts))
    assert np.abs(found).max() == release.largest_statistic


@pytest.mark.parametrize(
    "axis", [Grid("x", -1e31, 1.0, 4), Categories("x", (0.0, 1e100), ordered=True)]
)
def test_values_whose_powers_are_no_numbers_are_refused_before_anything_is_charged(axis):
    with pytest.raises(ValueError, match=r"x has values beyond 1e\+30"):
        Moments("m", Domain((axis, TRADE)), 4000, SHARE)


def test_levels_are_numbers_between_the_first_and_the_last():
    level = Categories("level", (1, 5, 9), ordered=True)
    release = Moments("m", Domain((level, TRADE)), 4000, SHARE)
    exact = release.statistic(Tally(release.domain, np.array([0, 8]), np.array([2000, 2000])))
    noisy = perturb(exact, release.mechanism, SHARE, SeededSource(1))
    mean = rows_of(release, noisy)["mean", "level", None, None]
    assert 1 <= mean["lower_95"] < mean["estimate"] < mean["upper_95"] <= 9
    assert mean["estimate"] == pytest.approx(5, abs=1)
