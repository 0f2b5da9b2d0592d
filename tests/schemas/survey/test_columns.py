"""Number columns: steps, levels and point masses, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from pydantic import ValidationError

from dpcore.domain.axes import Bins, Categories, Grid
from schemas.releases.classifier import Label
from schemas.survey.supposed import supposed_shares
from tests.tasks.survey.tables import column


def test_levels_are_cells_in_order_and_bound_the_column():
    pay = column("integer", levels=[0, 100, 5000], unit="EUR")
    assert pay.axis("pay") == Categories("pay", (0, 100, 5000), ordered=True)
    assert pay.bounds == (0, 5000)
    real = column("continuous", levels=[0, 0.5], nullable=True)
    assert real.axis("x") == Categories("x", (0.0, 0.5), True, ordered=True)


def test_point_masses_have_cells_of_their_own_beside_the_bins():
    pay = column("continuous", bounds=[0, 9], point_masses=[0, 4.5, 9])
    assert pay.bins("pay", [0, 3, 9]) == Bins("pay", (0, 0, 3, 4.5, 4.5, 9, 9))
    assert pay.bins("pay", [0, 4.5, 9]).points == (0, 2, 4)
    hours = column("integer", bounds=[0, 99], point_masses=[0, 40, 99])
    assert hours.bins("hours", [0, 30, 100]).edges == (0, 1, 30, 40, 41, 99, 100)


def test_a_step_is_exactly_the_number_that_is_written():
    assert column("continuous", bounds=[0, 1], step=0.1).axis("x").step == Fraction(1, 10)
    hours = column("integer", bounds=[0, 99], step=5)
    assert hours.bins("hours", [0, 50, 100]).step == 5
    assert column("integer", bounds=[0, 99]).axis("x") == Grid("x", 0, 100, 100, integer=True)


@pytest.mark.parametrize(
    ("kind", "rest", "said"),
    [
        ("integer", {"levels": [0, 5], "step": 5}, "levels: cannot be combined"),
        ("integer", {"levels": [0, 5], "point_masses": [0]}, "levels: cannot be combined"),
        ("integer", {"levels": [0, 3, 2, 5]}, "levels: must be ascending"),
        ("integer", {"levels": [0, 5], "bounds": [0, 9]}, "levels: must be ascending, from one"),
        ("integer", {"bounds": [3, 3]}, r"bounds: contain only 3; state `levels: \[3\]`"),
        ("integer", {"bounds": [0, 9], "step": 0.5}, "valid integer"),
        ("continuous", {"bounds": [0, 9], "step": 0}, "greater than 0"),
        ("continuous", {"bounds": [0, 9], "step": 1e-300}, "step: too small"),
        ("integer", {"bounds": [1, 5], "labels": {"1.0": "x"}}, "are not values of the column"),
        ("continuous", {"levels": [0, 1.5], "labels": {"1": "x"}}, "are not values of the column"),
        ("integer", {"bounds": [0, 9], "missing": [-9], "nullable": False}, "leave out `nullable"),
        ("categorical", {"categories": ["9", "NA"], "missing": [9, "NA"]}, "are categories too"),
        ("continuous", {"bounds": [0, 9], "point_masses": [10]}, "point_masses: must lie within"),
    ],
)
def test_what_contradicts_is_refused(kind: str, rest: dict, said: str):
    with pytest.raises(ValidationError, match=said):
        column(kind, **rest)


def test_codes_of_no_answer_make_a_column_nullable():
    assert column("integer", bounds=[0, 9], missing=[-9, "NA"]).nullable
    assert column("categorical", categories=["a"], missing=["NA"]).axis("x").size == 2


def test_a_label_of_a_column_with_point_masses_still_has_two_sides():
    pay = column("continuous", bounds=[0, 9], point_masses=[0, 4, 9])
    axis, signs = Label(column="pay", at_least=4).axis({"pay": pay})
    assert [axis.edges[code] for code, sign in enumerate(signs) if sign > 0] == [4, 4, 9]


@pytest.mark.parametrize(
    ("unit", "upper", "deviation"),
    [("visits", 14, 0.8), ("months", 120, 24.6), ("dollars", 150, 20.3), ("miles", 50, 8.1)],
)
def test_a_unit_says_whether_most_have_none_of_it(unit, upper, deviation):
    """The standard deviations are those of public surveys: Australian visits to doctors, tenure of
    telephone customers, hourly rates and distances from home of employees."""
    described = column("integer", bounds=[0, upper], unit=unit)
    shares = supposed_shares({"x": described}, [described.axis("x")])["x"]
    numbers = np.arange(upper + 1)
    mean = shares @ numbers
    supposed = np.sqrt(shares @ (numbers - mean) ** 2)
    assert 0.4 < supposed / deviation < 2.5
