"""The private bandwidth: Silverman's rule on a range whose law and loss are exact."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

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


def test_the_order_of_the_choices_does_not_matter_and_the_rule_is_the_printed_one():
    release = bandwidth(10, 32)
    for cells in ([2, 6], [6, 2]):
        (found,) = release.bandwidths(Noisy(np.array(cells)))
        assert found == pytest.approx(1.06 / 2 * 0.4 / 1.34, rel=1e-3)  # 32^(-1/5) = 1/2


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
    release = steady(4, 5)
    alpha, beta = float(release.share.alpha), float(release.share.beta)
    tables = all_counts(4, 5)
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
    event = LaplaceEvent(Fraction(1), release.mechanism.scale)
    assert goodness_of_fit(noise, event) > FALSE_ALARM
    assert goodness_of_fit(noise, event, stretch=2 / 3) < 1e-9
    assert goodness_of_fit(noise, event, stretch=3 / 2) < 1e-9


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
