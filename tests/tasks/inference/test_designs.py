"""Formulas that counts of cells settle, and the release that answers them."""

from fractions import Fraction

import pytest

from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from schemas.plan import Plan
from tasks.inference.designs import settled_by_cells
from tasks.inference.fit import answering
from tests.shortest import document

SEX, PLACE = Categories("sex", ("F", "M"), nullable=True), Categories("place", ("a", "b", "c"))
AGE = Bins("age", (18.0, 41, 81), integer=True, nullable=True)
PAY = Bins("pay", (0.0, 12.505, 100), step=Fraction(1, 100))
KIDS = Grid("kids", 0.0, 5.0, 5, integer=True)


@pytest.mark.parametrize(
    ("formula", "settled"),
    [
        ("{sex == 'M'} ~ C(place)", True),
        ("{age > 40} ~ 0 + C(place)", True),
        ("{age >= 41} ~ C(place) + sex", True),
        ("{age > 41} ~ C(place)", False),
        ("{sex == 'M'} ~ age", False),
        ("{pay > 12.5} ~ C(place)", True),
        ("{pay > 12.51} ~ C(place)", False),
        ("kids ~ {age > 40}", True),
        ("kids ~ nobody", False),
    ],
)
def test_cells_settle_a_formula_that_is_constant_in_each(formula, settled):
    assert settled_by_cells(formula, Domain((SEX, PLACE, AGE, PAY, KIDS))) == settled


def test_counts_that_settle_a_model_answer_it_before_tables_of_more_columns():
    columns = {
        "place": {"type": "categorical", "categories": ["a", "b", "c"]},
        "sex": {"type": "categorical", "categories": ["F", "M"]},
        "age": {"type": "integer", "bounds": [18, 80]},
    }
    releases = [
        {"name": "all", "kind": "microdata-margins", "columns": [*columns]},
        {
            "name": "counts",
            "kind": "histogram",
            "columns": ["age", "place"],
            "bins": {"age": [18, 41, 81]},
        },
    ]
    plan = Plan.model_validate(document(columns, releases, alpha="2", beta="1e-6", rows=2000))
    for formula, name in (
        ("{age > 40} ~ 0 + C(place)", "counts"),
        ("{age > 50} ~ 0 + C(place)", "all"),
        ("{age > 40} ~ C(place) + sex", "all"),
        ("age ~ C(place)", "all"),
    ):
        assert answering(plan, formula)[0].name == name
