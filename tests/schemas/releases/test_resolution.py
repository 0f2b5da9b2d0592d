"""How finely models read numbers: exactly where possible, and otherwise in fewer cells."""

import numpy as np
import pytest

from dpcore.domain.axes import Categories, Grid
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
    "region": CategoricalColumn(type="categorical", categories=["N", "S", "E", "W"]),
}


def read(formula: str) -> dict:
    named = {name: column for name, column in COLUMNS.items() if name in formula}
    return {axis.name: axis for axis in axes_of(formula, named)}


@pytest.mark.parametrize(
    ("formula", "cells"),
    [
        ("age ~ hectares + region", {"age": 84, "hectares": 65536, "region": 4}),
        ("hectares ~ age:region", {"age": 84, "hectares": 65536, "region": 4}),
        ("{debt > 0} ~ hectares", {"debt": 65536 - 2, "hectares": 65536}),
        ("{debt > 0} ~ region", {"debt": 65536 - 2, "region": 4}),
        ("profit ~ debt:hectares", {"profit": 65536 - 1, "debt": 1024 - 2, "hectares": 1024 - 1}),
        ("profit ~ debt:hectares:region", {"profit": 65536 - 1, "debt": 510, "hectares": 511}),
        ("{profit / age > 9} ~ debt", {"profit": 1024 - 1, "age": 84, "debt": 65536 - 2}),
    ],
)
def test_only_numbers_that_need_it_are_rounded(formula, cells):
    found = {
        name: axis.cells if isinstance(axis, Grid) else len(axis.categories)
        for name, axis in read(formula).items()
    }
    assert {name: found[name] for name in cells} == cells
    for group in terms_of(formula, "gaussian", tuple(read(formula).values())).groups:
        assert len(group.values) <= MOST_CELLS


def test_zero_and_point_masses_of_rounded_whole_numbers_stay_exact():
    debt = read("{debt > 0} ~ age")["debt"]
    assert debt.points == (0.0, 99.0)
    assert (debt.lower, debt.upper, debt.integer) == (0, 5_000_000, False)
    terms = terms_of("{debt > 0} ~ age", "binomial", tuple(read("{debt > 0} ~ age").values()))
    answers = terms.responses(np.array([[0, 3], [debt.cells, 3], [debt.cells + 1, 3]]))
    assert answers.tolist() == [1.0, 0.0, 1.0]


def test_a_product_of_categories_is_left_to_the_refusal():
    many = CategoricalColumn(type="categorical", categories=[f"c{i}" for i in range(1200)])
    formula = "age ~ {a == 'c1'}:{b == 'c2'}"
    axes = axes_of(formula, {"a": many, "b": many, "age": COLUMNS["age"]})
    assert all(isinstance(axis, Categories) for axis in axes[:2])
    with pytest.raises(ValueError, match="leave out the product, or merge categories"):
        terms_of(formula, "gaussian", tuple(axes))
