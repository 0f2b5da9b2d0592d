"""What has no value is shown as such: in tables, on the page and by the reader."""

import numpy as np
import pytest

from dpcore.releases.table import UNKNOWN
from tasks.report.page import REPORT
from tests.tasks.made_up import opened_once
from tests.tasks.report.pages import page_of

FORM = {"kind": "density", "columns": ["income"], "bandwidth": 0.2}
RELEASES = [
    {"name": "pay", "kind": "mean", "column": "income", "by": "sex"},
    {"name": "groups", **FORM, "mechanism": "binned-laplace", "by": "sex"},
    {"name": "all", **FORM, "mechanism": "spectral-gaussian"},
    {**FORM, "name": "map", "mechanism": "spectral-gaussian", "columns": ["age", "income"]},
    {"name": "kernels", "kind": "function", "columns": ["age", "income"], "bandwidth": 0.2},
]


@pytest.mark.slow
def test_the_page_the_tables_and_the_reader_say_that_there_is_no_value(plan_document, tmp_path):
    """So little budget that any number of records may be zero."""
    plan_document |= {"releases": RELEASES, "synthesis": [], "neighbours": "add-remove"}
    plan_document["budget"]["requested"]["alpha"] = "0.001"
    bundle = opened_once(tmp_path, plan_document)
    for name, columns in (
        ("pay", ("mean",)),
        ("groups", ("density", "lower_90")),
        ("all", ("density",)),
        ("map", ("density",)),
        ("kernels", ("estimate",)),
    ):
        table = bundle.table(name)
        assert set(table["reason"]) == {UNKNOWN}
        for column in (*columns, "standard_error"):
            assert np.ma.getmaskarray(table[column]).all()
    page = page_of(bundle.path)
    assert page.words.count("no value") >= 3
    assert not bundle.path.joinpath(REPORT).read_text().count("<title>Density of")
    found = bundle.evaluate("all", {"income": [1.0, 2.0]})
    assert all(np.ma.getmaskarray(values).all() for values in found.values())
