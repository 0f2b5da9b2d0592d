"""Single counts in a plan: what is counted, in words."""

import pytest

from schemas.releases.count import Condition


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
