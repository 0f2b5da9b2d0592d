"""Means: stated noise, and the smooth sensitivity of random differential privacy counted out."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency, Relation
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.line.mechanism import affordable
from dpcore.mechanisms.smooth_laplace import SmoothLaplace
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.tables.measured import TableNoise
from tests.chance import most_failures
from tests.dpcore.releases.contract import draws, tally_of

LOOSE = Budget.of("1", "1e-6", "0.1")
FORMS = [
    (relation, noise)
    for relation in ("replace-one", "add-remove")
    for noise in ("discrete-laplace", "discrete-gaussian")
]
WEIGHT = Domain((Grid("weight", 0.0, 100.0, 1000),))


def mechanism(codes: int, rows: int, share: Budget = LOOSE) -> SmoothLaplace:
    return SmoothLaplace.within(share, codes, rows)


def level(smooth: SmoothLaplace, records: np.ndarray) -> int:
    cells, counts = np.unique(records, return_counts=True)
    return smooth.level(counts, cells)


def test_the_level_is_that_of_the_definition():
    smooth, random = mechanism(60, 60, Budget.of("1", "1e-3", "0.4")), np.random.default_rng(1)
    n, a = 60, smooth.trimmed - 1
    for _ in range(50):
        x = np.sort(random.integers(0, 60, n) // random.integers(1, 20))
        ordered = lambda j: 0 if j < 1 else 59 if j > n else x[j - 1]  # noqa: E731, B023
        widths = [ordered(n - a + k) - ordered(a + 1 - k) for k in range(a + 2)]
        levels = [next(j for j, s in enumerate(smooth.table) if s >= width) for width in widths]
        assert level(smooth, x) == max(found - k for k, found in enumerate(levels))


def test_replacing_any_record_moves_the_level_by_one_step_at_most():
    smooth, random = mechanism(1000, 80, Budget.of("1", "1e-3", "0.4")), np.random.default_rng(2)
    moved = set()
    for _ in range(300):
        near = random.integers(0, 1000, 80) // random.integers(1, 200, 80)
        far = near.copy()
        far[0] = random.choice([0, 999, random.integers(1000)])
        moved.add(abs(level(smooth, near) - level(smooth, far)))
    assert moved == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("codes", [3])
def test_the_chance_that_a_replacement_moves_the_sum_by_more_than_the_width_is_at_most_gamma(codes):
    rows, gamma = 8, Fraction(1, 2)
    domain = Domain((Grid("x", 0.0, 1.0, codes),))
    release = Mean("m", domain, rows, Budget.of("1", "0.1", gamma), smooth=True)
    worst = Fraction(0)
    for cells in combinations_with_replacement(range(codes), rows + 1):
        covered = [
            release.promises(
                *(
                    tally_of(domain, tuple(c for i, c in enumerate(cells) if i != left_out))
                    for left_out in (replacement, record)
                )
            )
            for record, replacement in permutations(range(rows + 1), 2)
        ]
        worst = max(worst, Fraction(covered.count(False), len(covered)))
    assert 0 < worst <= release.mechanism.event.exposure <= gamma


def test_a_scale_one_step_off_is_as_close_as_stated():
    """The hockey-stick divergence of the noise from that of neighbouring scales, summed exactly."""
    smooth = mechanism(200, 400, Budget.of("1", "0.01", "0.1"))
    alpha, z = float(smooth.alpha), np.arange(-4000, 4001)

    def law(place: int) -> np.ndarray:
        a = math.exp(-1 / float(smooth.scale(place)))
        return (1 - a) / (1 + a) * a ** np.abs(z)

    tails = [
        np.maximum(law(i) - math.exp(alpha / 2) * law(i + step), 0).sum()
        for i in range(1, len(smooth.table) - 1)
        for step in (-1, 1)
    ]
    assert 0 < max(tails) <= 0.01
    slower = replace(smooth, growth=1 + 4 * (smooth.growth - 1))
    assert affordable(smooth.event, Budget.of("1", "0.01", "0.1"))
    assert not affordable(slower.event, Budget.of("1", "0.01", "0.1"))


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (Budget.of("1", "1e-6", "0.0001"), "gamma of at least 0.001"),
        (Budget.of("1", 0, "0.1"), "needs beta"),
    ],
)
def test_a_share_that_cannot_pay_is_refused(share: Budget, says: str):
    with pytest.raises(ValueError, match=says):
        _ = Mean("m", WEIGHT, 4000, share, smooth=True).mechanism


def test_columns_without_a_mean_are_refused():
    with pytest.raises(ValueError, match="may be null"):
        Mean("m", Domain((Grid("x", 0.0, 1.0, 4, nullable=True),)), 10, LOOSE)


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "noise"), FORMS)
def test_the_means_of_groups_hold_those_with_a_value_inside_their_intervals(
    relation: Relation, noise: TableNoise
):
    """Groups of unequal size, one of them empty, and of null; a fifth of the values are null."""
    generator = np.random.default_rng(6)
    places = Categories("place", ("a", "b", "nobody"), nullable=True)
    domain = Domain((places, replace(WEIGHT.axes[0], nullable=True)))
    place = generator.choice(4, 3000, p=[0.7, 0.25, 0, 0.05])
    code = generator.binomial(999, np.array([0.1, 0.5, 0.5, 0.8])[place])
    code[generator.random(3000) < 0.2] = 1000
    share = LOOSE if noise == "discrete-laplace" else Budget(rho=LOOSE.alpha**2 / 2)
    release = RatioMean("m", domain, 3000, share, noise, adjacency=Adjacency(relation))
    inside = [code[(place == g) & (code < 1000)] for g in (0, 1, 3)]
    truth = np.array([(codes.mean() + 0.5) * 0.1 for codes in inside])
    held, half, away, stated, rows = [], [], [], [], []
    for noisy in draws(release, place * 1001 + code, 300):
        (table,) = release.publish(noisy).tables
        columns = {name: np.ma.getdata(c)[[0, 1, 3]] for name, c in table.columns.items()}
        held.append((columns["lower_90"] <= truth) & (truth <= columns["upper_90"]))
        low, high = (ends[[0, 1, 3]] for ends in release.intervals(noisy, 0.5))
        half.append((low <= truth) & (truth <= high))
        away.append(columns["noisy_mean"] - truth)
        stated.append(columns["standard_error"])
        rows.append(columns["noisy_rows"])
    assert table.columns["place"].tolist() == ["a", "b", "nobody", None]
    assert np.all(300 - np.sum(held, axis=0) <= most_failures(300, 0.1))
    assert np.sum(held) <= most_failures(900, 0.9)
    assert np.sum(held) > np.sum(half) >= 900 - most_failures(900, 0.5)
    np.testing.assert_allclose(np.std(away, axis=0), np.median(stated, axis=0), rtol=0.25)
    np.testing.assert_allclose(np.mean(rows, axis=0), [len(codes) for codes in inside], atol=3)
    assert np.std(rows, axis=0) == pytest.approx(table.columns["rows_standard_error"][0], rel=0.25)


@pytest.mark.parametrize("noise", ["discrete-laplace", "discrete-gaussian"])
def test_the_interval_of_a_mean_holds_it_at_any_level(noise: TableNoise):
    codes = np.random.default_rng(8).binomial(999, 0.9, 500)
    share = LOOSE if noise == "discrete-laplace" else Budget(rho=LOOSE.alpha**2 / 2)
    release, truth = Mean("m", WEIGHT, 500, share, noise=noise), (codes.mean() + 0.5) * 0.1
    held = []
    for noisy in draws(release, codes, 400):
        ends = [release.intervals(noisy, level) for level in (0.5, 0.9)]
        held.append([float(low[0]) <= truth <= float(high[0]) for low, high in ends])
        (table,) = release.publish(noisy).tables
        assert table.columns["lower_90"][0] == pytest.approx(ends[1][0][0])
    for level, times in zip((0.5, 0.9), np.sum(held, axis=0), strict=True):
        assert 400 - most_failures(400, 1 - level) <= times <= most_failures(400, level)
