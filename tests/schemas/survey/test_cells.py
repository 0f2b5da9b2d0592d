"""Cells of numbers follow from what is public of them, and are cells that a plan may have."""

from decimal import Decimal

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from dpcore.domain.cell_values import CellNumbers
from schemas.releases.binning import Bins, binned_domain
from schemas.survey.cells import Cells, Numbers
from schemas.survey.columns import ContinuousColumn, IntegerColumn
from schemas.survey.supposed import supposed_shares


def numbers(lower: str, upper: str, step: str = "", *, whole: bool = False, **more) -> Numbers:
    return Numbers(Decimal(lower), Decimal(upper), Decimal(step) if step else None, whole, **more)


def column_with(of: Numbers, cells: Cells):
    """The column of a plan."""
    kind, cast = (IntegerColumn, int) if of.whole else (ContinuousColumn, float)
    return kind(
        type="integer" if of.whole else "continuous",
        bounds=(cast(of.lower), cast(of.upper)),
        step=cast(of.step) if of.step else None,
        point_masses=cells.points,
    )


def axis(of: Numbers, cells: Cells):
    """The cells as a plan's column makes them."""
    column = column_with(of, cells)
    return column.bins("x", cells.edges) if cells.edges else column.axis("x")


@pytest.mark.parametrize(
    "of",
    [
        numbers("0", "100000", "0.01"),
        numbers("0", "80"),
        numbers("0", "7", "0.25"),
        numbers("0", "60", "0.1"),
        numbers("-5", "5"),
        numbers("-10000", "1000000", "0.01"),
        numbers("0.1", "40"),
        numbers("0.5", "3000", "0.5"),
        numbers("-40", "-0.5", "0.5"),
        numbers("-50", "120000", "100", whole=True),
        numbers("-120000", "50", "100"),
        numbers("0", "1e12", "0.01", special=[Decimal("450.5")]),
        numbers("0", "60", whole=True),
        numbers("0", "50000", whole=True),
        numbers("0", "50000", "100", whole=True),
        numbers("3", "7000", "7", whole=True),
        numbers("1", "1200000", whole=True, special=[Decimal(99999)]),
        numbers("-1000000", "2000", whole=True),
        numbers("1900", "2030", whole=True),
        numbers("1000", "9000", whole=True),
        numbers("-10000000", "10000000", whole=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("purpose", ["for_records", "for_tables"])
def test_all_cells_may_be_written_in_a_plan_and_hold_values(of, purpose):
    cells = getattr(of, purpose)()
    made = axis(of, cells)
    inside = CellNumbers.of(made, np.arange(made.size))
    assert (inside.first <= inside.last).all()
    if purpose == "for_records":
        written = binned_domain({"x": column_with(of, cells)}, ["x"], {"x": "fine"})
        assert written.axes == (made,)
    most = 1025 if purpose == "for_records" else 45
    assert 4 <= made.size <= most
    if made.size < 1024:  # otherwise cells of one value
        ends = np.array([float(of.lower), float(of.upper)])
        assert (inside.lower.min(), inside.upper.max()) == pytest.approx(ends, abs=1.01)


def test_values_that_many_people_have_are_cells_of_their_own():
    paid = numbers("0", "200000", "0.01", special=[Decimal("1250.5")]).for_records()
    assert paid.points == [0, 1250.5]
    assert numbers("0", "200000", whole=True).for_records().edges[:4] == [0, 1, 2, 3]
    assert numbers("0", "5", whole=True).for_records() == (None, [])
    spelt = numbers("0", "200000", whole=True, special=[Decimal(99999)]).for_records()
    assert spelt.points == [99999]


def test_cells_grow_where_amounts_crowd_near_zero_and_are_equal_elsewhere():
    edges = np.array(numbers("0", "100000", "0.01").for_records().edges)
    growth = edges[2:] / edges[1:-1]
    assert growth.max() < 1.3
    assert growth[: (edges < 1e4).sum()].min() > 1.04
    assert np.diff(edges).max() <= 1000  # a hundredth, as days in a study crowd at its end
    equal = np.diff(numbers("34", "42").for_records().edges)
    assert equal.max() == pytest.approx(equal.min())
    assert numbers("0", "110", whole=True, unit="years").for_tables().edges[:3] == [0, 10, 20]
    assert numbers("0", "84", whole=True, unit="days").for_tables().edges[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize(("upper", "step"), [("1e10", "0.01"), ("1e10", ""), ("1e4", "1e-8")])
def test_cells_grow_from_small_amounts_however_large_the_bound_is(upper, step):
    of, unit = numbers("0", upper, step), float(upper) / 1e10
    edges = np.array(of.for_records().edges)
    assert edges[1] <= 20 * unit  # at a bound of ten thousand million euros, 20 euros
    assert (edges[2:] / edges[1:-1]).max() < 1.3
    few = np.array(of.for_tables().edges)
    assert len(few) <= 15
    assert few[1] <= 101 * unit
    assert (few[2:] / few[1:-1]).max() < 11
    made = axis(of, of.for_records())
    (assumed,) = supposed_shares({"x": column_with(of, of.for_records())}, [made]).values()
    assert assumed.min() >= 0
    assert assumed.sum() == pytest.approx(1)


def test_tables_distinguish_small_numbers_of_things_and_large_amounts():
    employees = numbers("0", "100000", whole=True).for_tables().edges
    assert employees[:7] == [0, 1, 2, 5, 10, 20, 50]
    income = numbers("0", "100000", "0.01").for_tables().edges
    assert income[-7:] == [1000, 2000, 5000, 10000, 20000, 50000, 100000]
    assert len(income) <= 14


def test_cells_of_small_numbers_grow_only_until_they_are_equal():
    """Whether a pH or an amount, which may crowd near zero: no bound says which."""
    few = numbers("0", "14", "0.01").for_tables().edges
    assert few[:4] == [0, 0.1, 0.5, 1]
    assert few[3:] == [*range(1, 15)]
    many = np.diff(numbers("0", "14", "0.01").for_records().edges)
    assert many[1] < 0.02
    assert many.max() < 0.201
    share = numbers("0", "1").for_tables().edges
    assert np.diff(share)[-9:] == pytest.approx(0.1)


def test_amounts_on_both_sides_of_zero_grow_from_it():
    edges = np.array(numbers("-10000000", "10000000", whole=True).for_records().edges)
    assert np.sum(np.abs(edges) <= 30_000) > len(edges) / 3
    assert len({*np.diff(numbers("-400", "500").for_tables().edges)}) < 4  # hardly an amount


def test_no_cell_is_empty_beside_a_point_mass_where_each_value_has_a_cell():
    of = numbers("0", "1", "0.01")
    made = axis(of, of.for_records([0.0]))
    inside = CellNumbers.of(made, np.arange(made.size))
    assert (inside.first <= inside.last).all()


@pytest.mark.parametrize(("word", "more"), [("Fine", "; did you mean 'fine'"), ("many", "")])
def test_another_word_for_bins_is_refused_with_what_to_write(word, more):
    with pytest.raises(ValidationError, match=f"a list of edges, or `fine`{more}"):
        TypeAdapter(Bins).validate_python({"pay": word})
