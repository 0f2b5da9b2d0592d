"""Values that many records share, and how round others are."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.advice.usable import relative_error, verdict
from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.domain.step_values import StepValues, coarsened
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.releases.counts.heaping import MOST_VALUES, Heaping
from dpcore.synthesis.column import ColumnCells, ColumnValues
from tests.chance import most_failures

SHARE = Budget.of("1", "1e-6")


def heaping(values: StepValues, rows: int, share: Budget = SHARE) -> Heaping:
    return Heaping("h", Domain((values.axis,)), rows, share, values=(values,))


def exact_of(release: Heaping, of: Tally) -> np.ndarray:
    return release.statistic(of)._statistic.values


def tally(values: StepValues, numbers: np.ndarray) -> Tally:
    """Of numbers, as they would be read from a file; NaN is null."""
    axis = values.axis
    position = np.floor((numbers - axis.lower) / (axis.upper - axis.lower) * axis.cells)
    position = np.minimum(position, axis.cells - 1)  # the last cell holds its upper edge
    return Tally.of(Domain((axis,)), np.where(np.isnan(numbers), axis.cells, position).astype(int))


@pytest.mark.parametrize("step", ["1", "5", "0.5", "0.25", "0.01"])
def test_every_multiple_has_its_cell_and_its_roundness(step):
    step = Fraction(step)
    values = StepValues.of("x", (-20.0, 123.0), step, nullable=False)
    numbers = values.numbers(np.arange(values.axis.cells))
    assert abs(numbers[0] + 20) <= step / 2
    assert abs(numbers[-1] - 123) <= step / 2
    assert values.axis.lower <= -20
    assert values.axis.upper >= 123
    edges = values.axis.edge(np.arange(values.axis.cells + 1))
    assert np.all((edges[:-1] <= numbers) & (numbers < edges[1:]))
    kinds = values.roundness
    powers = [m * Fraction(10) ** p / step for p in range(-3, 4) for m in (1, 5)]
    round_ones = [int(each) for each in powers if each.denominator == 1 and each > 1]
    for number, of in zip(numbers.tolist(), kinds.of.tolist(), strict=True):
        steps = abs(round(Fraction(number) / step))
        if steps == 0:
            assert of == -1
            continue
        assert kinds.every[of] == max((r for r in round_ones if steps % r == 0), default=1)
        assert kinds.power[of] == len(str(steps)) - 1
    assert np.array_equal(kinds.values, np.bincount(kinds.of[kinds.of >= 0]))


def test_the_statistic_counts_each_record_by_value_and_by_roundness():
    values = StepValues.of("x", (0, 100), Fraction(1), nullable=True)
    numbers = np.array([0, 0, 50, 50, 50, 52, 7, np.nan])
    release = heaping(values, len(numbers))
    exact = exact_of(release, tally(values, numbers))
    by_value, by_class = np.split(exact, [101])
    assert by_value[[0, 50, 52, 7]].tolist() == [2, 3, 1, 1]
    assert by_value.sum() == 7
    assert by_class.sum() == 5  # neither zero nor null
    assert by_class[values.roundness.of[[50, 52, 7]]].tolist() == [3, 1, 1]


def test_intervals_of_shared_values_hold_at_once_and_only_values_that_somebody_has_are_published():
    generator = np.random.default_rng(1)
    values = StepValues.of("x", (0, 2000), Fraction(1), nullable=False)
    numbers = np.concatenate(
        [generator.integers(0, 2001, 3000), np.repeat([1000, 1500, 1999], 120)]
    )
    release = heaping(values, len(numbers))
    exact = exact_of(release, tally(values, numbers))
    wrong, found, times = 0, np.zeros(2001), 400
    for _ in range(times):
        noise = release.mechanism.simulate(len(exact), generator)
        table, _ = release.publish(Noisy(exact + noise)).tables
        of = np.asarray(table.columns["x"])
        truth = exact[of]
        inside = (table.columns["lower_90"] <= truth) & (truth <= table.columns["upper_90"])
        wrong += not np.all(inside & (truth > 0))
        found[of] += 1
    assert wrong <= most_failures(times, 0.1)
    assert np.all(found[[1000, 1500, 1999]] > 0.9 * times)


def test_records_have_the_shared_values_and_the_roundness_of_the_survey():
    generator = np.random.default_rng(2)
    rows = 20_000
    incomes = np.rint(generator.lognormal(10, 0.7, rows)).clip(1, 199_999)
    heaped = generator.random(rows)
    incomes = np.where(heaped < 0.5, np.rint(incomes / 1000) * 1000, incomes)
    incomes = np.where(heaped < 0.05, 31_234, incomes).clip(1, 199_999)
    values = StepValues.of("x", (0, 199_999), Fraction(1), nullable=False)
    release = heaping(values, rows)
    exact = exact_of(release, tally(values, incomes))
    noisy = Noisy(exact + release.mechanism.simulate(len(exact), generator))
    edges = (0.0, 1.0, *(1000.0 * e for e in (1, 2, 5, 10, 15, 20, 30, 40, 50, 75, 100, 200)))
    axis = Bins("x", edges, integer=True)
    codes = np.searchsorted(edges, incomes, side="right") - 1
    made = ColumnCells.of(axis, codes, ColumnValues.of(release, noisy, "x")).draw(generator)
    assert np.array_equal(np.searchsorted(edges, made, side="right") - 1, codes)
    assert np.array_equal(made, np.rint(made))
    assert abs(np.mean(made == 31_234) - np.mean(incomes == 31_234)) < 0.005
    assert abs(np.mean(made % 1000 == 0) - np.mean(incomes % 1000 == 0)) < 0.06
    without = ColumnCells.of(axis, codes, None).draw(generator)
    assert np.mean(without % 1000 == 0) < 0.01


@pytest.mark.slow
def test_round_values_keep_much_of_their_share_though_no_class_of_them_stands_out_of_the_noise():
    generator = np.random.default_rng(4)
    numbers = np.concatenate(
        [
            np.repeat(np.arange(1, 10) * 100_000, 18),
            generator.integers(10, 100, 200) * 10_000,
            generator.integers(100, 1000, 250) * 1000,
            generator.integers(100_000, 1_000_000, 300),
            generator.integers(1000, 100_000, 3000),
        ]
    )
    values = StepValues.of("x", (0, 999_999), Fraction(1), nullable=False)
    release = heaping(values, len(numbers), Budget.of("0.15", "1e-9"))
    exact = exact_of(release, tally(values, numbers))
    axis = Bins("x", (0.0, 100_000.0, 500_000.0, 1_000_000.0), integer=True)
    codes = np.searchsorted(axis.edges, numbers, side="right") - 1
    large, shares = numbers >= 100_000, []
    assert 0.4 < np.mean(numbers[large] % 10_000 == 0) < 0.45
    for _ in range(20):
        noisy = Noisy(exact + release.mechanism.simulate(len(exact), generator))
        made = ColumnCells.of(axis, codes, ColumnValues.of(release, noisy, "x")).draw(generator)
        shares.append(np.mean(made[large] % 10_000 == 0))
    assert 0.17 < np.mean(shares) < 0.45  # judged by how few values are round, 0.07


def test_decimal_values_are_written_as_a_file_would_have_them():
    values = StepValues.of("x", (16.3, 528.7), Fraction("0.1"), nullable=False)
    numbers = np.repeat([20.3, 100.7, 528.7], 500)
    release = heaping(values, len(numbers))
    noisy = Noisy(exact_of(release, tally(values, numbers)))
    axis = Bins("x", (16.3, 50.0, 200.0, 528.7), step=Fraction("0.1"))
    codes = np.repeat([0, 1, 2], 500)
    cells = ColumnCells.of(axis, codes, ColumnValues.of(release, noisy, "x"))
    made = cells.draw(np.random.default_rng(3))
    assert np.mean(made == numbers) > 0.99


def test_bounds_that_are_no_multiples_are_in_the_first_and_the_last_cell():
    for bounds in ((3, 1001), (16.32, 52.07), (-7, 2.5)):
        values = StepValues.of("x", bounds, Fraction(5), nullable=False)
        inside = tally(values, np.array(bounds, dtype=float)).cells
        assert inside.tolist() == [0, values.axis.cells - 1]
    one = StepValues.of("x", (0, 1000), Fraction(5000), nullable=False)
    with pytest.raises(ValueError, match="has fewer than two multiples of its step"):
        heaping(one, 100)


def test_more_values_than_can_be_drawn_are_refused_if_no_round_number_is_among_them():
    values = StepValues.of("x", (0, 1e7), Fraction(1, 3), nullable=False)
    assert coarsened([values], 100)[0].step == 500_000  # 20 of 10 million; 100,000 would leave 101
    values = StepValues.of("x", (0, 1e7), Fraction(1, 10**12) + 1, nullable=False)
    assert coarsened([values], MOST_VALUES) == (values,)
    with pytest.raises(ValueError, match=r"columns: have more than 2,097,152 different values"):
        heaping(values, 100)


def test_the_widest_columns_count_at_round_numbers_and_every_value_has_a_cell():
    few, wide, cents = (
        StepValues.of(name, bounds, Fraction(step), nullable=False)
        for name, bounds, step in (
            ("few", (-3, 1999), "1"),
            ("wide", (-500, 1_999_999), "1"),
            ("cents", (0.03, 1e7), "0.01"),
        )
    )
    assert coarsened([few, wide], MOST_VALUES) == (few, wide)
    for of in (
        coarsened([few, wide, cents], MOST_VALUES),
        coarsened([cents, wide, few], MOST_VALUES)[::-1],
    ):
        assert [each.step for each in of] == [1, 5, 10]
        for each, (lower, upper) in zip(
            of, ((-3, 1999), (-500, 1_999_999), (0.03, 1e7)), strict=True
        ):
            assert tally(each, np.array([lower, upper])).cells.tolist() == [0, each.axis.cells - 1]


def test_records_of_a_wide_column_have_round_and_other_values_as_often_as_the_survey():
    """Incomes up to ten million, to the cent: half in thousands, a fifth in dollars, others exact."""
    generator, rows = np.random.default_rng(7), 40_000
    values = StepValues.of("x", (0, 1e7), Fraction("0.01"), nullable=False)
    (coarse,) = coarsened([values], MOST_VALUES)
    exact = np.round(generator.lognormal(10.8, 0.6, rows), 2)
    kind = generator.random(rows)
    incomes = np.where(kind < 0.5, np.rint(exact / 1000) * 1000, exact)
    incomes = np.where((kind > 0.5) & (kind < 0.7), np.rint(exact), incomes).clip(1, 1e7)
    release = heaping(coarse, rows)
    noisy_cells = exact_of(release, tally(coarse, incomes))
    noisy = Noisy(noisy_cells + release.mechanism.simulate(len(noisy_cells), generator))
    edges = np.r_[0.0, np.rint(np.geomspace(1000, 1e7, 400))]
    axis = Bins("x", tuple(edges), step=Fraction("0.01"))
    codes = np.searchsorted(edges, incomes, side="right") - 1
    cells = ColumnCells.of(axis, codes, ColumnValues.of(release, noisy, "x"))
    made = cells.draw(generator)
    assert np.array_equal(np.searchsorted(edges, made, side="right") - 1, codes)
    assert np.array_equal(made, np.round(made, 2))
    assert abs(np.mean(made % 1000 == 0) - np.mean(incomes % 1000 == 0)) < 0.05
    assert np.mean(made % 10 == 0) < np.mean(incomes % 10 == 0) + 0.05
    assert np.mean(made % 1 != 0) > 0.35  # a third of these would be left without a cell beside


@pytest.mark.parametrize("seen", [0.02, 0.1, 0.5])
def test_it_is_as_good_as_few_records_are_enough_to_see_a_value(seen):
    values = StepValues.of("x", (0.0, 100.0), Fraction(1), nullable=False)
    release = heaping(values, round(heaping(values, 10_000).threshold(values) / seen))
    assert relative_error(release) == pytest.approx(seen, rel=0.05)
    assert verdict(relative_error(release)) == {0.02: "good", 0.1: "rough"}.get(seen, "not usable")
