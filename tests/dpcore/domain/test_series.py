"""The weights of a series, and the sensitivity of all its runs, against every unit that could be."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.series import STEPS, Factor, each_alone, square_root, totals
from dpcore.mechanisms.gaussian import GaussianEvent

CELLS = 2
FACTORS = [square_root, each_alone, totals, lambda periods: Factor((1024, 1000, 3, 3, 0)[:periods])]
every_factor = pytest.mark.parametrize("make", FACTORS)


def units(factor: Factor, runs: int, in_periods: int, most: int) -> list[np.ndarray]:
    """What every unit with at most ``most`` records in each of ``in_periods`` periods adds to the
    statistics of all runs: (runs, cells) steps, one record at a time."""
    table = np.array([[*factor.run(u), *(0,) * (runs - u)] for u in range(1, runs + 1)])
    in_one = [c for c in product(range(most + 1), repeat=CELLS) if sum(c) <= most]
    histories = (
        np.array(history)
        for history in product(in_one, repeat=runs)
        if sum(any(period) for period in history) <= in_periods
    )
    return [table @ history for history in histories]


@every_factor
@pytest.mark.parametrize(("runs", "in_periods", "most"), [(4, 1, 1), (4, 2, 2), (3, 3, 2)])
def test_no_unit_adds_more_than_the_sensitivity_and_one_adds_as_much(make, runs, in_periods, most):
    factor = make(5 if runs == 4 else runs)
    added = units(factor, runs, in_periods, most)
    adjacency = Adjacency("add-remove", most, unit="household")
    squared = factor.l2_sensitivity_squared(runs, in_periods, adjacency)
    assert max(int((unit**2).sum()) for unit in added) == squared
    assert max(int(unit.sum()) for unit in added) == factor.l1_sensitivity(
        runs, in_periods, adjacency
    )


@every_factor
@pytest.mark.parametrize(("in_periods", "most"), [(1, 1), (2, 1), (1, 2), (3, 1)])
def test_no_unit_replaces_another_with_more_than_the_sensitivity(make, in_periods, most):
    factor, runs = make(3), 3
    added = np.array(units(factor, runs, in_periods, most)).reshape(-1, runs * CELLS)
    adjacency = Adjacency("replace-one", most, unit="household")
    moved = np.abs(added[:, None] - added[None, :])
    squared = factor.l2_sensitivity_squared(runs, in_periods, adjacency)
    assert (moved**2).sum(axis=2).max() == squared
    assert moved.sum(axis=2).max() == factor.l1_sensitivity(runs, in_periods, adjacency)


@every_factor
def test_records_that_change_within_their_periods_add_no_more(make):
    """A record in each of two periods, in any cell in any run."""
    factor, runs = make(3), 3
    adjacency = Adjacency("add-remove", 1, unit="person")
    squares, lengths = [], []
    for periods in combinations(range(runs), 2):
        for places in product(range(CELLS), repeat=2 * runs):
            added = np.zeros((runs, CELLS), dtype=int)
            for run in range(runs):
                for period, cell in zip(periods, places[2 * run :], strict=False):
                    if period <= run:
                        added[run, cell] += factor.run(run + 1)[period]
            squares.append(int((added**2).sum()))
            lengths.append(int(added.sum()))
    assert max(squares) == factor.l2_sensitivity_squared(runs, 2, adjacency)
    assert max(lengths) == factor.l1_sensitivity(runs, 2, adjacency)


@every_factor
@pytest.mark.parametrize("in_periods", [1, 2, 4])
def test_prices_charged_run_by_run_cover_every_unit_as_long_as_noise_does_not_shrink(
    make, in_periods
):
    factor, runs = make(5), 4
    variances = [Fraction(v * STEPS**2) for v in (1, 1, 3, 7)]
    charged = sum(
        GaussianEvent(Fraction(factor.moved(u, in_periods) ** 2), variances[u - 1]).concentrated[0]
        for u in range(1, runs + 1)
    )
    lost = [
        sum(Fraction(int(row @ row)) / (2 * v) for row, v in zip(unit, variances, strict=True))
        for unit in units(factor, runs, in_periods, 1)
    ]
    assert max(lost) == charged


def test_narrower_noise_later_would_cost_more_than_is_charged():
    factor, variances = each_alone(2), [4, 1]
    charged = sum(factor.moved(u, 1) ** 2 / variances[u - 1] for u in (1, 2))
    lost = [(unit**2).sum(axis=1) @ (1 / np.array(variances)) for unit in units(factor, 2, 1, 1)]
    assert max(lost) > charged


def test_the_root_squared_is_the_table_of_totals_up_to_rounding():
    root = square_root(60).matrix(60)
    assert root @ root == pytest.approx(np.tril(np.ones((60, 60))), abs=60 / STEPS)
    assert square_root(4).steps == (1024, 512, 384, 320)
    assert np.all(totals(5).matrix(5) == np.tril(np.ones((5, 5))))
    assert np.all(each_alone(5).matrix(5) == np.eye(5))


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: square_root(0), "periods: must lie between 1 and 1200, not 0"),
        (lambda: Factor((1024, 512, 600)), "never rise"),
        (lambda: Factor((512, 512)), "begin with 1"),
        (lambda: Factor((1024, -1)), "never be negative"),
        (lambda: square_root(3).run(4), "period: must lie between 1 and 3, not 4"),
        (lambda: square_root(3).moved(1, 0), "in_periods: must be positive"),
    ],
)
def test_what_is_no_series_is_refused(act, words):
    with pytest.raises(ValueError, match=words):
        act()
