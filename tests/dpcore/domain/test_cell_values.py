"""The numbers of a cell are those that people write, and none of another cell."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.cell_values import CellNumbers, multiple
from tests.chance import FALSE_ALARM

RANDOM = np.random.default_rng(4)
POSITIONS = np.array([0.0, 1e-17, 0.2, 0.5, 0.999, 1 - 2.0**-53])


def numbers_of(axis: Bins, code: int, step: Fraction) -> list[float]:
    """By the words of ``Bins``, from a list of all multiples."""
    lower, upper = axis.edges[code : code + 2]
    if upper - lower == axis.integer:
        return [lower]
    reach = range(int(axis.lower / step) - 2, int(axis.upper / step) + 3)
    multiples = [float(k * step) for k in reach]
    alone = {axis.edges[point] for point in axis.points}
    last = code == axis.cells - 1 and not axis.integer
    return [x for x in multiples if lower <= x and (x < upper or (last and x == upper))
            and x not in alone]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "integer"),
    [
        *((step, False) for step in ("1", "5", "1/10", "0.01", "0.25", "1/3")),
        ("1", True),
        ("5", True),
    ],
)
def test_the_numbers_of_every_cell_are_those_of_a_list_of_all(step: str, integer: bool):
    written = Fraction(step)
    inner = RANDOM.integers(-30, 70, 6).tolist()
    if not integer:
        inner = [x / 10 for x in inner] + [float(k * written) for k in (-3, 1, 7)]
        inner += inner[-2:]  # two point masses
    ends = (-40.0, 80.0)
    cut = tuple(sorted([*map(float, set(inner) if integer else inner), *ends]))
    axis = Bins("x", cut, integer=integer, step=written)
    inside = CellNumbers.of(axis, np.arange(axis.cells))
    for code in range(axis.cells):
        expected = numbers_of(axis, code, written)
        if not expected:
            assert inside.first[code] > inside.last[code]
            continue
        assert (inside.first[code], inside.last[code]) == (expected[0], expected[-1])
        many = inside.select(np.full(4000, code))
        found, counts = np.unique(many.at(RANDOM.random(4000)), return_counts=True)
        assert set(found) <= set(expected)
        if len(expected) <= 100:
            assert len(found) == len(expected)
            assert len(found) == 1 or stats.chisquare(counts).pvalue > FALSE_ALARM
        for ends in (many.at(np.zeros(4000)), many.at(np.full(4000, 1 - 2.0**-53))):
            assert set(ends) <= {expected[0], expected[-1]}


def test_doubles_stay_in_their_cell_and_off_its_point_masses():
    axis = Bins("x", (0.0, 0.0, 0.5, 0.5, 0.7, 1.0, 1.0))
    for code in range(axis.cells):
        lower, upper = axis.edges[code : code + 2]
        values = CellNumbers.of(axis, np.full(6, code)).at(POSITIONS)
        if lower == upper:
            assert set(values) == {lower}
        else:
            assert np.all((values >= axis.starts[code]) & (values < upper))
            assert not set(values) & {0.0, 0.5, 1.0}


def test_a_narrower_range_holds_every_number_within_it_and_no_other():
    axis = Bins("x", (0.0, 10.0, 20.0), step=Fraction(1, 2))
    whole = CellNumbers.of(axis, np.zeros(2000, dtype=np.int64))
    some = whole.within(np.full(2000, 3.2), np.full(2000, 7.1))
    assert sorted(set(some.at(RANDOM.random(2000)))) == [3.5 + k / 2 for k in range(8)]
    one = whole.within(np.full(2000, 3.5), np.full(2000, 3.9))
    assert set(one.at(RANDOM.random(2000))) == {3.5}
    none = whole.within(np.full(2000, 3.6), np.full(2000, 3.9))
    assert np.all(none.first > none.last)
    real = CellNumbers.of(Bins("x", (0.0, 1.0)), np.zeros(50, dtype=np.int64))
    values = real.within(np.full(50, 0.25), np.full(50, 0.5)).at(RANDOM.random(50))
    assert np.all((values >= 0.25) & (values <= 0.5))


def test_levels_and_fine_grids():
    levels = Categories("x", (0.0, 2.5, 10.0), ordered=True)
    assert CellNumbers.of(levels, np.array([2, 0])).at(np.array([0.9, 0.9])).tolist() == [10.0, 0.0]
    fine = Grid("x", 0.0, 1.0, 1024, step=Fraction(1, 10))
    values = CellNumbers.of(fine, np.array([0, 1023, 55])).at(np.array([0.5, 0.5, 0.5]))
    assert values.tolist() == [0.0, 1.0, 0.1]


@pytest.mark.parametrize("step", [Fraction(1, 10), Fraction(1, 3), Fraction(7), Fraction(1, 100)])
def test_multiples_around_a_number_are_the_nearest_on_each_side(step: Fraction):
    numbers = np.r_[RANDOM.uniform(-1e6, 1e6, 500), [float(k * step) for k in range(-300, 300)]]
    above, below = multiple(numbers, step, 1), multiple(numbers, step, -1)
    for x, up, down in zip(numbers.tolist(), above.tolist(), below.tolist(), strict=True):
        k = round(Fraction(x) / step)
        near = [float((k + i) * step) for i in (-2, -1, 0, 1, 2)]
        assert up == min(m for m in near if m >= x)
        assert down == max(m for m in near if m <= x)
