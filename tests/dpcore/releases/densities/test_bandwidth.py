"""The private bandwidth: Silverman's rule on a range whose law and loss are exact."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.mechanisms.laplace import LaplaceEvent
from dpcore.releases.densities.bandwidth import Bandwidth, SteadyBandwidth
from dpcore.sampling.source import SeededSource
from tests.chance import FALSE_ALARM
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import drawn, repeated_draws


def bandwidth(cells: int, rows: int, alpha: str = "1", smallest: float = 0.001) -> Bandwidth:
    return Bandwidth(
        "h", Domain((Grid("x", -5.0, 5.0, cells),)), rows, Budget.of(alpha), smallest=smallest
    )


def found(release: Bandwidth, records: np.ndarray) -> float:
    (width,) = release.bandwidths(drawn(release, records))
    return width


@pytest.mark.parametrize("stddev", [0.5, 1.5])
def test_on_normal_records_it_is_silverman_s_rule(stddev: float):
    rows = 20_000
    quantiles = stats.norm(scale=stddev).ppf((np.arange(rows) + 0.5) / rows)
    cells = np.clip((quantiles + 5) / 10 * 1000, 0, 999).astype(int)
    expected = 1.06 * stddev / 10 * rows**-0.2
    assert found(bandwidth(1000, rows), cells) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("rows", [1, 1000])
def test_where_all_records_are_alike_it_is_the_smallest(rows: int):
    # Choices that miss the cell of all records miss many records: rows alpha / 8 > 30.
    release = bandwidth(10, rows, alpha=str(1000 / rows))
    assert found(release, np.full(rows, 4)) == release.smallest


def test_the_order_of_the_choices_does_not_matter_and_the_rule_is_the_printed_one():
    release = bandwidth(10, 32)
    for cells in ([2, 6], [6, 2]):
        (found,) = release.bandwidths(Noisy(np.array(cells)))
        assert found == pytest.approx(1.06 / 2 * 0.4 / 1.34, rel=1e-3)  # 32^(-1/5) = 1/2


def test_two_columns_have_the_rule_of_two_dimensions_each_on_its_own_grid():
    """Normal records on grids of 900 and 40 cells, whose candidates are 900 for both."""
    domain = Domain((Grid("x", -5.0, 5.0, 900), Grid("y", -8.0, 8.0, 40)))
    rows, generator = 20_000, np.random.default_rng(1)
    values = np.clip(generator.normal((5, 8), (1, 2), (rows, 2)) / (10, 16), 0, 0.999)
    release = Bandwidth("h", domain, rows, Budget.of("2"), smallest=0.001)
    cells = domain.pack((values * (900, 40)).astype(np.int64))
    noisy = drawn(release, cells)
    expected = np.array([1.0 / 10, 2.0 / 16]) * rows ** (-1 / 6)
    np.testing.assert_allclose(release.bandwidths(noisy), expected, rtol=0.06)
    columns = release.publish(noisy).tables[0].columns
    assert columns["x_from"] == pytest.approx([-0.674, 0.674], abs=0.1)
    assert columns["y_from"] == pytest.approx([-1.35, 1.35], abs=0.5)


@pytest.mark.parametrize("smallest", [0.0, -1.0, math.inf, math.nan])
def test_a_smallest_bandwidth_that_is_none_is_refused(smallest: float):
    with pytest.raises(ValueError, match="smallest: must be positive"):
        bandwidth(10, 5, smallest=smallest)


def test_a_column_without_order_is_refused():
    with pytest.raises(ValueError, match="must be an integer or continuous"):
        Bandwidth("h", Domain((Categories("x", ("a", "b")),)), 5, Budget.of(1), smallest=1.0)


def steady(cells: int, rows: int, alpha: str = "3", beta: str = "0.2") -> SteadyBandwidth:
    share = Budget.of(alpha, beta)
    return SteadyBandwidth("h", Domain((Grid("x", 0.0, 1.0, cells),)), rows, share, smallest=0.01)


def all_counts(cells: int, rows: int) -> list[np.ndarray]:
    tables = combinations_with_replacement(range(cells), rows)
    return [np.bincount(table, minlength=cells) for table in tables]


@pytest.mark.parametrize(("cells", "rows"), [(6, 5), (5, 7), (8, 4)])
def test_the_distance_to_another_cell_is_the_number_of_records_to_replace(cells: int, rows: int):
    """Against a search over all tables; an empty range counts as a cell of its own."""
    release = steady(cells, rows)
    mechanism, tables = release.mechanism, np.array(all_counts(cells, rows))
    widths = np.array([mechanism._spread(counts) for counts in tables])
    for grid, shift in enumerate((0.0, 0.5)):
        number = np.where(widths > 0, np.floor(mechanism.logarithms[widths] + shift), -1)
        for counts, own, width in zip(tables, number, widths, strict=True):
            apart = np.abs(tables[number != own] - counts).sum(axis=1) // 2
            expected = min(apart, default=2**61) if width else 0
            assert mechanism.distances(counts)[grid] == expected


def outcomes(
    release: SteadyBandwidth, counts: np.ndarray, most: int
) -> dict[tuple[int, int], float]:
    """The law of the answer, by its definition; steps beyond ``most`` are left out."""
    mechanism = release.mechanism
    a, b = (math.exp(-1 / float(s)) for s in (mechanism.test_scale, mechanism.scale))

    def passed(distance: int) -> float:
        z = mechanism.threshold - distance + 1  # P(Z >= z)
        return a**z / (1 + a) if z > 0 else 1 - a ** (1 - z) / (1 + a)

    first, second = (passed(distance) for distance in mechanism.distances(counts))
    steps = np.arange(-most, most)
    noise = (1 - b) / (1 + b) * b ** np.abs(steps - mechanism.steps(counts))
    told = {(1, s): first * p for s, p in zip(steps, noise, strict=True)}
    told |= {(2, s): (1 - first) * second * p for s, p in zip(steps, noise, strict=True)}
    return told | {(0, 0): (1 - first) * (1 - second)}


def test_replacing_any_record_costs_no_more_than_alpha_and_beta():
    release = steady(5, 5)
    alpha, beta = float(release.share.alpha), float(release.share.beta)
    tables = all_counts(5, 5)
    laws = [np.array(list(outcomes(release, counts, 3000).values())) for counts in tables]
    worst = 0.0
    for one, near in zip(tables, laws, strict=True):
        for other, far in zip(tables, laws, strict=True):
            if np.abs(one - other).sum() == 2:
                worst = max(worst, np.maximum(near - math.exp(alpha) * far, 0).sum())
    assert beta / 100 < worst <= beta


def test_the_answer_is_drawn_from_that_law():
    release = steady(6, 13)
    counts = np.array([7, 0, 0, 0, 3, 3])
    answers = repeated_draws(release, np.repeat(np.arange(6), counts), 20_000, SeededSource(4))
    law = outcomes(release, counts, 20_000)
    for grid in (0, 1, 2):
        chance = sum(p for (g, _), p in law.items() if g == grid)
        assert np.mean(answers[:, 0] == grid) == pytest.approx(chance, abs=0.02)
    noise = answers[answers[:, 0] == 1, 1] - release.mechanism.steps(counts)
    assert goodness_of_fit(noise, LaplaceEvent(Fraction(1), release.mechanism.scale)) > FALSE_ALARM


def test_a_steady_range_is_told_and_one_that_a_few_records_move_is_not():
    rows = 20_000
    quantiles = stats.norm(scale=1.5).ppf((np.arange(rows) + 0.5) / rows)
    cells = np.clip((quantiles + 5) / 10 * 1000, 0, 999).astype(int)
    domain = Domain((Grid("x", -5.0, 5.0, 1000),))
    release = SteadyBandwidth("h", domain, rows, Budget.of("3", "1e-6"), smallest=0.001)
    noisy = drawn(release, cells)
    expected = 1.06 * 1.5 / 10 * rows**-0.2
    assert noisy.values[0] in (1, 2)
    assert release.bandwidths(noisy)[0] == pytest.approx(expected, rel=0.6)  # five factors of 1.1
    (table,) = release.publish(noisy).tables
    assert table.columns["lower_90"] < 1.349 * 1.5 < table.columns["upper_90"]

    halves = np.repeat([0, 999], rows // 2)  # a quartile may be in either
    halves[: rows // 4] = 999
    refused = drawn(release, np.r_[halves[1:], 0])
    assert refused.values.tolist() == [0, 0]
    assert release.bandwidths(refused) == (release.smallest,)
    assert len(release.publish(refused).tables[0].columns["upper_90"]) == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rows": 2}, "needs at least 3 rows"),
        ({"share": Budget.of(1)}, "needs beta"),
        ({"smallest": 0.0}, "smallest: must be positive"),
        ({"adjacency": Adjacency("add-remove")}, "propose-test-release is private only"),
    ],
)
def test_a_steady_bandwidth_that_cannot_be_is_refused(change: dict[str, object], says: str):
    with pytest.raises(ValueError, match=says):
        _ = replace(steady(6, 13), **change).mechanism
