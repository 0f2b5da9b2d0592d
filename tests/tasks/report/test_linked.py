"""The page of linked records counts the members that a few drawn units have."""

import pytest

from tests.shortest import from_yaml
from tests.tasks.made_up import opened_once
from tests.tasks.report.pages import page_of

PLAN = """
rows: 200
alpha: "4"
privacy_unit: {column: home, max_rows: 5, name: household}
neighbours: add-remove
columns:
  sex: {type: categorical, categories: [F, M]}
linked: {order: [sex]}
releases:
  - {name: homes, kind: microdata-margins, columns: [sex], mechanism: discrete-laplace}
synthesis: [{name: people, from: homes, rows: 1}]
"""


@pytest.mark.slow
def test_a_unit_smaller_than_the_largest_has_a_page(tmp_path):
    page = page_of(opened_once(tmp_path, from_yaml(PLAN)).path)
    assert "1 synthetic records" in page.words
