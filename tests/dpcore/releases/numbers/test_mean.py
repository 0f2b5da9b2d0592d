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
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import affordable
from dpcore.mechanisms.laplace import LaplaceEvent
from dpcore.mechanisms.smooth_laplace import SmoothLaplace
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from tests.chance import FALSE_ALARM, most_failures
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import drawn, draws, tally_of

LOOSE = Budget.of("1", "1e-6", "0.1")
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


@pytest.mark.parametrize("codes", [3, 4])
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


def test_smooth_noise_has_the_scale_of_its_level_which_is_far_below_that_of_the_worst_table():
    records = np.random.default_rng(3).binomial(999, 0.3, 4000)
    release = Mean("m", WEIGHT, 4000, LOOSE, smooth=True)
    noise = np.array([noisy.values[0] for noisy in draws(release, records, 1500)]) - records.sum()
    scale = release.mechanism.scale(level(release.mechanism, records))
    assert goodness_of_fit(noise, LaplaceEvent(Fraction(1), scale)) > FALSE_ALARM
    assert scale < 0.2 * Mean("m", WEIGHT, 4000, LOOSE).mechanism.scale


def test_a_smooth_interval_holds_the_mean_and_its_error_is_not_understated():
    records = np.random.default_rng(4).binomial(999, 0.1, 4000)
    release = Mean("m", WEIGHT, 4000, LOOSE, smooth=True)
    truth = (records.mean() + 0.5) * 0.1
    held, errors, stated = 0, [], []
    for noisy in draws(release, records, 300):
        (table,) = release.publish(noisy).tables
        row = {name: column[0] for name, column in table.columns.items()}
        held += row["lower_90"] <= truth <= row["upper_90"]
        errors.append(row["noisy_mean"] - truth)
        stated.append(row["standard_error"])
    assert 300 - held <= most_failures(300, 0.1)
    assert np.std(errors) < 1.4 * np.median(stated)
    assert np.std(errors) <= 1.4 * release.expected_error()[0].value


def test_all_records_at_one_value_and_whole_numbers():
    ages = Domain((Grid("age", 18, 90, 72, integer=True),))
    release = Mean("m", ages, 500, Budget.of("1000", "1e-6", "0.5"), smooth=True)
    noisy = drawn(release, (12,) * 500)
    (table,) = release.publish(noisy).tables
    assert table.columns["mean"][0] == pytest.approx(30, abs=0.01)


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


MILLISECONDS = Domain((Grid("ms", 0.0, 2e12 + 1, 2 * 10**12 + 1, integer=True),))
EUROS = Domain((Grid("eur", 0.0, 3e13 + 1, 3 * 10**13 + 1, integer=True),))


@pytest.mark.parametrize(
    ("kind", "domain", "rows", "facts"),
    [
        (Mean, MILLISECONDS, 2_400_000, {}),
        (Mean, EUROS, 1_229_783, {}),
        (Mean, MILLISECONDS, 2_400_000, {"smooth": True}),
        (RatioMean, MILLISECONDS, 2_400, {"adjacency": Adjacency("add-remove")}),
    ],
)
def test_a_mean_whose_sums_may_not_fit_is_refused_before_any_table_is_seen(
    kind, domain, rows, facts
):
    """With one neighbour refused and the other published, and with a sum that wraps around."""
    with pytest.raises(ValueError, match=r"^column: .* below 2\^61 .*narrower bounds"):
        kind("m", domain, rows, Budget.of("1", "1e-6", "0.1"), **facts)


def test_the_largest_mean_that_fits_is_published_right():
    size = 2**30 + 1
    domain, rows = Domain((Grid("x", 0.0, float(size), size, integer=True),)), 2**31 - 1
    with pytest.raises(ValueError, match=r"^column: "):
        Mean("m", domain, rows + 1, Budget.of("1"))
    release = Mean("m", domain, rows, Budget.of("1"))
    everybody = Tally(domain, np.array([size - 1]), np.array([rows]))
    noisy = drawn(release, everybody, 3)
    (mean,) = release.publish(noisy).tables[0].columns["noisy_mean"]
    assert mean == pytest.approx(2**30, abs=30.0)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_means_of_groups_hold_those_with_a_value_inside_their_intervals(relation: Relation):
    """Groups of unequal size, one of them empty, and of null; a fifth of the values are null."""
    generator = np.random.default_rng(6)
    places = Categories("place", ("a", "b", "nobody"), nullable=True)
    domain = Domain((places, replace(WEIGHT.axes[0], nullable=True)))
    place = generator.choice(4, 3000, p=[0.7, 0.25, 0, 0.05])
    code = generator.binomial(999, np.array([0.1, 0.5, 0.5, 0.8])[place])
    code[generator.random(3000) < 0.2] = 1000
    release = RatioMean("m", domain, 3000, LOOSE, adjacency=Adjacency(relation))
    inside = [code[(place == g) & (code < 1000)] for g in (0, 1, 3)]
    truth = np.array([(codes.mean() + 0.5) * 0.1 for codes in inside])
    held, away, stated, rows = [], [], [], []
    for noisy in draws(release, place * 1001 + code, 300):
        (table,) = release.publish(noisy).tables
        columns = {name: np.ma.getdata(c)[[0, 1, 3]] for name, c in table.columns.items()}
        held.append((columns["lower_90"] <= truth) & (truth <= columns["upper_90"]))
        away.append(columns["noisy_mean"] - truth)
        stated.append(columns["standard_error"])
        rows.append(columns["noisy_rows"])
    assert table.columns["place"].tolist() == ["a", "b", "nobody", None]
    assert np.all(300 - np.sum(held, axis=0) <= most_failures(300, 0.1))
    assert np.sum(held) <= most_failures(900, 0.9)
    np.testing.assert_allclose(np.std(away, axis=0), np.median(stated, axis=0), rtol=0.25)
    np.testing.assert_allclose(np.mean(rows, axis=0), [len(codes) for codes in inside], atol=3)
    assert np.std(rows, axis=0) == pytest.approx(table.columns["rows_standard_error"][0], rel=0.25)


def test_groups_that_are_not_public_cells_are_refused():
    real = Domain((Grid("height", 0.0, 2.0, 64), *WEIGHT.axes))
    with pytest.raises(ValueError, match=r"^by: 'height' has real numbers"):
        RatioMean("m", real, 10, LOOSE)
    many = Domain((Grid("zip", 0, 99999, 99999, integer=True), *WEIGHT.axes))
    with pytest.raises(ValueError, match=r"^by: 'zip' has 99999 groups"):
        RatioMean("m", many, 10, LOOSE)
