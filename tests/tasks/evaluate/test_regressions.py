"""Coefficients are those of least squares, and their intervals overlap as far as they should."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpcore.errors import InputError
from tasks.evaluate.regressions import ComparedCoefficient, stated_regression
from tasks.evaluate.tables import TablePair

ROWS = 3000


def people(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    age, sex = random.integers(20, 60, ROWS), random.choice(["F", "M"], ROWS, p=[0.6, 0.4])
    town = random.choice(["a", "b", "c"], ROWS, p=[0.5, 0.3, 0.2])
    pay = 100 * age + 500 * (sex == "M") - 300 * (town == "b") + random.normal(0, 400, ROWS)
    frame = pd.DataFrame({"age": age.astype(float), "sex": sex, "town": town, "pay": pay})
    return frame.assign(noise=random.normal(size=ROWS), again=2 * frame["age"])


def paired(synthetic: pd.DataFrame) -> TablePair:
    return TablePair(people(1), synthetic, (), 20)


def test_a_single_predictor_agrees_with_scipy():
    real = people(1)
    (found,) = stated_regression(paired(people(2)), "pay ~ age").coefficients
    line = stats.linregress(real["age"], real["pay"])
    assert (found.real, found.real_error) == pytest.approx((line.slope, line.stderr))


def test_coefficients_of_categories_are_against_the_most_frequent_one():
    found = stated_regression(paired(people(2)), "pay ~ age + sex + town")
    by_term = {one.term: one.real for one in found.coefficients}
    assert by_term == {
        "age": pytest.approx(100, rel=0.05),
        "sex = M": pytest.approx(500, abs=60),
        "town = b": pytest.approx(-300, abs=60),
        "town = c": pytest.approx(0, abs=80),
    }
    assert found.overlap > 0.5


def test_overlap_is_one_for_equal_intervals_and_zero_for_disjoint_ones():
    assert ComparedCoefficient("x", 1, 2, 1, 2).overlap == 1
    assert ComparedCoefficient("x", 0, 1, 10, 1).overlap == 0
    assert ComparedCoefficient("x", 0, 1, 0, 2).overlap == pytest.approx((1 + 0.5) / 2)
    assert ComparedCoefficient("x", 0, 1, np.nan, np.nan).overlap == 0


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("pay", "write COLUMN ~ COLUMN"),
        ("town ~ pay", "must be numeric, or have two values"),
    ],
)
def test_what_is_no_regression_is_told(formula, says):
    with pytest.raises(InputError, match=says):
        stated_regression(paired(people(2)), formula)
