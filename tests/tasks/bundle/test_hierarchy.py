"""A bundle of counts by region: a table for each level, sums with exact errors, and its page."""

import numpy as np
import pytest

from tasks.bundle.reader import BundleReader
from tests.conftest import plan_of_every_kind
from tests.tasks.made_up import opened_once
from tests.tasks.report.pages import page_of, part_of

SECTION = {
    "name": "people",
    "kind": "hierarchy",
    "hierarchy": {
        "columns": ["region", "sex"],
        "members": [["north", "F"], ["north", "M"], ["south", "F"], ["east", "M"]],
    },
    "columns": ["age"],
    "bins": {"age": [18, 30, 60, 90]},
    "totals": {"by": "region", "counts": {"north": 120, "south": 100, "east": 90}},
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> BundleReader:
    releases = [SECTION | {"mechanism": "discrete-gaussian"}]
    document = plan_of_every_kind() | {"releases": releases, "synthesis": []}
    return opened_once(tmp_path_factory.mktemp("hierarchy"), document)


@pytest.mark.slow
def test_there_is_a_table_for_each_level_and_the_reader_adds_up_regions(bundle):
    assert {"people.age", "people.region.age", "people.region.sex.age"} <= set(bundle.tables)
    north = bundle.total("people.region.age", lambda t: np.ma.filled(t["region"] == "north", False))
    parts = bundle.total(
        "people.region.sex.age", lambda t: np.ma.filled(t["region"] == "north", False)
    )
    assert (north.value, north.standard_error) == (pytest.approx(120), pytest.approx(0, abs=1e-6))
    assert (parts.value, parts.standard_error) == (pytest.approx(120), pytest.approx(0, abs=1e-6))
    women = bundle.total("people.region.sex.age", lambda t: np.ma.filled(t["sex"] == "F", False))
    alone = bundle.table("people.region.sex.age")["standard_error"].max()
    assert 0 < women.standard_error < alone * 6**0.5
    assert bundle.total("people.age").value == pytest.approx(400)


def test_the_page_says_what_the_totals_cost_and_where_strays_are(bundle):
    section = part_of(page_of(bundle.path), "release-people")
    assert "the promise is only for tables with these totals" in section.words
    assert "is not in the hierarchy" in section.words
    assert len(list(section.all("svg"))) == 3
    for words in ("north · F", "outside", "Records by region", "All 3 tables of this release"):
        assert words in section.words
