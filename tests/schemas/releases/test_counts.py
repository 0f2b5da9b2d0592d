"""Single counts in a plan: what is counted, in words."""

import pytest

from schemas.plan import Plan
from schemas.releases.count import Condition
from tests.schemas.refusals import refused
from tests.shortest import document


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ({"at_least": 50000}, "income of 50000 or more"),
        ({"at_least": 0}, "income of 0 or more"),
        ({"below": 0.02}, "income below 0.02"),
        ({"at_least": 18, "below": 65}, "income of 18 or more, but below 65"),
        ({"categories": ["low", "none"]}, "income = low or none"),
    ],
)
def test_a_condition_is_told_in_words(condition, text):
    assert Condition(column="income", **condition).text == text


def test_a_condition_on_levels_names_levels():
    level = {"type": "integer", "levels": [1, 5, 9]}
    count = {"name": "some", "kind": "count", "condition": {"column": "level", "at_least": 5}}
    says = "condition: state categories for a column of categories or levels"
    assert says in refused(document({"level": level}, [count]))
    count["condition"] = {"column": "level", "categories": [5, 9]}
    assert Plan.model_validate(document({"level": level}, [count]))
