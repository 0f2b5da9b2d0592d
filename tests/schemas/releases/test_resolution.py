"""How finely models read numbers: exactly where possible, and otherwise in fewer cells."""

from itertools import pairwise

import numpy as np
import pytest

from dpcore.domain.axes import Categories, middles
from dpcore.releases.models.terms import MOST_CELLS
from schemas.releases.formulas import terms_of
from schemas.releases.resolution import axes_of
from schemas.survey.columns import CategoricalColumn, ContinuousColumn, IntegerColumn

COLUMNS = {
    "debt": IntegerColumn(type="integer", bounds=(0, 5_000_000), point_masses=[99]),
    "profit": IntegerColumn(type="integer", bounds=(-1_000_000, 5_000_000)),
    "age": IntegerColumn(type="integer", bounds=(16, 99)),
    "hectares": ContinuousColumn(
        type="continuous", bounds=(0.0, 2000.0), grid=65536, point_masses=[0.0]
    ),
    "wealth": ContinuousColumn(type="continuous", bounds=(0.0, 5e7), grid=65536),
    "region": CategoricalColumn(type="categorical", categories=["N", "S", "E", "W"]),
}


def read(formula: str) -> dict:
    named = {name: column for name, column in COLUMNS.items() if name in formula}
    return {axis.name: axis for axis in axes_of(formula, named)}


def size(axis) -> int:
    return len(axis.categories) if isinstance(axis, Categories) else axis.cells


@pytest.mark.parametrize(
    ("formula", "most"),
    [
        ("age ~ hectares + region", {"age": 84, "hectares": 65536, "region": 4}),
        ("hectares ~ age:region", {"age": 84, "hectares": 65536, "region": 4}),
        ("{debt > 0} ~ hectares", {"debt": 4096, "hectares": 65536}),
        ("log(debt + 1) ~ region", {"debt": 4096, "region": 4}),
        ("profit ~ debt:hectares", {"profit": 4096, "debt": 512, "hectares": 512}),
        ("profit ~ debt:hectares:region", {"profit": 4096, "debt": 256, "hectares": 256}),
        ("{profit / age > 9} ~ debt", {"profit": 4096, "age": 84, "debt": 4096}),
    ],
)
def test_only_numbers_that_need_it_are_rounded(formula, most):
    found = read(formula)
    for name, cells in most.items():
        rounded = cells not in (84, 65536, 4)
        assert (cells - 40 if rounded else cells) <= size(found[name]) <= cells
    for group in terms_of(formula, "gaussian", tuple(found.values())).groups:
        assert len(group.values) <= MOST_CELLS


def test_values_that_many_share_stay_exact():
    formula = "{debt > 1234567} ~ age"
    debt = read(formula)["debt"]
    single = {e for e, after in pairwise(debt.edges) if after == e + 1}
    assert {0.0, 99.0, 1234567.0, 5_000_000.0} <= single
    terms = terms_of(formula, "binomial", tuple(read(formula).values()))
    at = [debt.edges.index(1234567.0), debt.edges.index(1234568.0)]
    assert terms.responses(np.array([[code, 3] for code in at])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("column", ["debt", "wealth"])
@pytest.mark.parametrize("amount", [1, 2, 50, 700, 1e4, 4.2e6])
def test_small_amounts_keep_their_logarithm(column, amount):
    """Whole numbers and real ones, of a range for which equal cells would be 76 and 763 wide."""
    axis = read(f"log({column} + 1) ~ age")[column]
    code = np.searchsorted(axis.edges, amount, side="right") - 1
    value = float(middles(axis)[code])
    assert np.log(value + 1) == pytest.approx(np.log(amount + 1), abs=0.01 if amount > 9 else 0.3)


def test_too_many_wide_columns_in_one_term_are_refused():
    """Four columns would have twenty values each, and a share of 36% would come out as 75%."""
    for formula in ("{debt / hectares > profit / wealth} ~ age", "age ~ debt:profit:wealth"):
        with pytest.raises(ValueError, match="which have too many values together; leave a column"):
            read(formula)


def test_a_number_with_a_step_counts_as_written():
    """The middle of the cell of 40.0 is above 40, and would make everybody with 40 hours overworked."""
    hours = ContinuousColumn(type="continuous", bounds=(0.0, 168.0), step=0.1)
    for formula, answers in (("{hours > 40} ~ age", [0, 1]), ("{hours == 40.1} ~ age", [0, 1])):
        axes = axes_of(formula, {"hours": hours, "age": COLUMNS["age"]})
        terms = terms_of(formula, "binomial", tuple(axes))
        cells = [int(hour / 168 * axes[0].cells) for hour in (40.0, 40.1)]
        assert terms.responses(np.array([[cell, 3] for cell in cells])).tolist() == answers


def test_a_product_of_categories_is_left_to_the_refusal():
    many = CategoricalColumn(type="categorical", categories=[f"c{i}" for i in range(1200)])
    formula = "age ~ {a == 'c1'}:{b == 'c2'}"
    axes = axes_of(formula, {"a": many, "b": many, "age": COLUMNS["age"]})
    assert all(isinstance(axis, Categories) for axis in axes[:2])
    with pytest.raises(ValueError, match="leave out the product, or merge categories"):
        terms_of(formula, "gaussian", tuple(axes))


def test_a_step_of_real_amounts_has_a_cell_of_its_own_where_conditions_need_it():
    wealth = ContinuousColumn(type="continuous", bounds=(0.0, 5e7), step=0.01)
    formula = "{wealth > 1250.5} ~ age"
    axes = axes_of(formula, {"wealth": wealth, "age": COLUMNS["age"]})
    assert axes[0].points == ()  # as a point has a large share of the assumed records
    terms = terms_of(formula, "binomial", tuple(axes))
    cells = np.searchsorted(axes[0].edges, [0.0, 1250.4, 1250.5, 1250.51], side="right") - 1
    answers = terms.responses(np.array([[cell, 3] for cell in cells]))
    assert answers.tolist() == [0.0, 0.0, 0.0, 1.0]


def amounts(**keys) -> ContinuousColumn:
    return ContinuousColumn.model_validate({"type": "continuous", "bounds": (0.0, 20000.0)} | keys)


def terms_with(formula: str, amount: ContinuousColumn):
    columns = {"amount": amount, "age": COLUMNS["age"]}
    return terms_of(formula, "gaussian", tuple(axes_of(formula, columns)))


@pytest.mark.parametrize(
    "function", ["log(amount + 1)", "amount**0.5", "1 / (amount + 1)", "log(20001 - amount)"]
)
@pytest.mark.parametrize("sides", ["{{{}}} ~ age", "age ~ {{{}}}", "age ~ {{{}}}:age"])
def test_a_function_that_changes_inside_the_cell_of_a_bound_is_refused(function, sides):
    """A fifth of all people may have no income, and would count as if they had half a cell."""
    formula = sides.format(function)
    with pytest.raises(
        ValueError, match=r"in the cell of amount at (0|20000), .* `point_masses: \[(0|20000)"
    ):
        terms_with(formula, amounts())
    terms_with(formula, amounts(point_masses=[0, 20000]))
    terms_with(formula, amounts(step=20))  # each value has a cell of its own


@pytest.mark.parametrize("keys", [{}, {"grid": 16}, {"grid": 65536}, {"bounds": (100.0, 20000.0)}])
def test_functions_that_change_evenly_are_accepted(keys):
    for formula in ("amount ~ age", "age ~ amount + {amount * amount}", "{amount > 9000} ~ age"):
        terms_with(formula, amounts(**keys))


@pytest.mark.parametrize("most", [500, 20000, 50000, 1e6])
def test_a_logarithm_of_zero_is_refused_for_all_bounds(most):
    with pytest.raises(ValueError, match="no finite value somewhere inside the bounds of amount"):
        terms_with("{log(amount)} ~ age", amounts(bounds=(0.0, most)))


def test_zero_is_exact_for_all_bounds_that_a_search_may_find():
    found = amounts(bounds=[0, "open"]).with_found((0.0, 16384.0))
    terms = terms_with("{log(amount + 1)} ~ age", found)
    assert terms.response.values.min() == 0.0
