"""A hierarchy in a plan: its members, totals and zeros, in the plan or in files beside it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcore.errors import PlanError
from dpcore.releases.tables.hierarchy import Hierarchy
from schemas.plan import load_plan, published_plan
from tests.conftest import write_plan

MEMBERS = [["A", "001", "t1"], ["A", "001", "t2"], ["A", "002", "t1"], ["B", "001", "t9"]]


@pytest.fixture
def document(plan_document: dict) -> dict:
    plan_document["columns"] |= {
        "state": {"type": "categorical", "categories": ["A", "B"]},
        "county": {"type": "categorical", "categories": ["001", "002"]},
        "tract": {"type": "categorical", "categories": ["t1", "t2", "t9"]},
    }
    plan_document["releases"] = [
        {
            "name": "people",
            "kind": "hierarchy",
            "hierarchy": {"columns": ["state", "county", "tract"], "members": MEMBERS},
            "columns": ["sex", "age"],
            "bins": {"age": [18, 30, 60, 90]},
            "mechanism": "discrete-gaussian",
        }
    ]
    plan_document["synthesis"] = []
    return plan_document


def built(folder: Path, document: dict) -> Hierarchy:
    release = load_plan(write_plan(folder, document)).built["people"]
    assert isinstance(release, Hierarchy)
    return release


def in_file(folder: Path, name: str, *lines: str) -> str:
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return name


def test_regions_are_rows_in_any_order_and_a_code_may_occur_in_several(tmp_path, document):
    release = built(tmp_path, document)
    assert release.regions.sizes == (1, 3, 4, 5)
    assert release.width == 6
    document["releases"][0]["hierarchy"]["members"] = MEMBERS[::-1]
    again = built(tmp_path, document)
    np.testing.assert_array_equal(release.regions.leaves, again.regions.leaves)


def test_a_file_beside_the_plan_is_read_into_it(tmp_path, document):
    inline = load_plan(write_plan(tmp_path, document))
    lines = [",".join(row[i] for i in (2, 0, 1)) for row in MEMBERS]
    name = in_file(tmp_path, "regions.csv", "tract,state,county", *lines)
    document["releases"][0]["hierarchy"]["members"] = name
    document["columns"]["tract"]["categories"] = name
    plan = load_plan(write_plan(tmp_path, document))
    assert plan.columns["tract"].categories == ["t1", "t2", "t9"]
    assert plan.digest == inline.digest
    (tmp_path / name).unlink()  # what is published needs no file
    assert published_plan(plan.public()).built["people"].regions.sizes == (1, 3, 4, 5)


def test_totals_are_a_mapping_or_rows_or_a_file(tmp_path, document):
    section = document["releases"][0]
    section["totals"] = {"by": "state", "counts": {"B": 100, "A": 300}}
    assert built(tmp_path, document).totals.counts.tolist() == [300, 100]
    rows = [["B", "001", 100], ["A", "002", 50], ["A", "001", 250]]
    section["totals"] = {"by": "county", "counts": rows}
    assert built(tmp_path, document).totals.counts.tolist() == [250, 50, 100]
    lines = [",".join(map(str, row)) for row in rows]
    name = in_file(tmp_path, "totals.csv", "state,county,records", *lines)
    section["totals"] = {"by": "county", "counts": name}
    assert built(tmp_path, document).totals.counts.tolist() == [250, 50, 100]


def test_zeros_are_leaves_or_cells_of_leaves(tmp_path, document):
    document["releases"][0]["impossible"] = [
        {"tract": ["t1"], "sex": ["F"], "age": {"below": 30}},
        {"state": ["B"]},
        {"county": ["002"], "age": {"from": 60}},
    ]
    possible = built(tmp_path, document).possible
    assert possible is not None
    zeros = [np.flatnonzero(~leaf).tolist() for leaf in possible]
    assert zeros == [[0], [], [0, 2, 5], [0, 1, 2, 3, 4, 5], []]


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a leaf twice": ({"members": [*MEMBERS, MEMBERS[0]]}, "is listed twice"),
    "an unknown code": ({"members": [["A", "003", "t1"]]}, "'003' is not among the categories"),
    "no file": ({"members": "nowhere.csv"}, "cannot be read"),
    "an unknown column": ({"columns": ["state", "parish"]}, "declares no column 'parish'"),
    "a number": ({"columns": ["state", "children"]}, "children must be categorical"),
    "a larger region without a name": (
        {"members": [*MEMBERS, ["B", "", "t1"]]},
        r"row 5: \['B', '', 't1'\] lacks a name",
    ),
    "a line break": ({"members": [*MEMBERS, ["B", "001", "t\n1"]]}, "row 5: .* a line break"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_tree_is_refused(tmp_path, document, fault: str):
    change, says = FAULTS[fault]
    document["releases"][0]["hierarchy"] |= change
    with pytest.raises(PlanError, match=says):
        load_plan(write_plan(tmp_path, document))


FILES: dict[str, tuple[list[str], str]] = {
    "another column": (["state,county,tract,name", "A,001,t1,x"], r"not used here: \['name'\]"),
    "a short record": (["state,county,tract", "A,001,t1", "A,002"], "record 3: has 2 values"),
    "an unfinished quote": (["state,county,tract", 'A,001,"t1'], "cannot be read"),
}


@pytest.mark.parametrize("fault", FILES)
def test_a_faulty_file_is_refused(tmp_path, document, fault: str):
    lines, says = FILES[fault]
    document["releases"][0]["hierarchy"]["members"] = in_file(tmp_path, "regions.csv", *lines)
    with pytest.raises(PlanError, match=says):
        load_plan(write_plan(tmp_path, document))


REST: dict[str, tuple[dict[str, Any], str]] = {
    "a column of the tree": ({"columns": ["sex", "tract"]}, "are columns of the hierarchy"),
    "totals by another column": (
        {"totals": {"by": "sex", "counts": {"F": 1}}},
        "'sex' is not a column of the hierarchy",
    ),
    "a total is missing": ({"totals": {"by": "state", "counts": {"A": 400}}}, "each state"),
    "totals beyond the rows": (
        {"totals": {"by": "state", "counts": {"A": 400, "B": 1}}},
        "add up to 401",
    ),
    "a zero nowhere": (
        {"impossible": [{"state": ["B"], "tract": ["t1"]}]},
        "matches no region",
    ),
    "zeros everywhere": ({"impossible": [{"sex": ["F", "M"]}]}, "excludes every region"),
    "totals of weights": (
        {"weighted": True, "totals": {"by": "state", "counts": {"A": 400, "B": 0}}},
        "weighted: the plan states no",
    ),
}


@pytest.mark.parametrize("fault", REST)
def test_what_a_tree_cannot_hold_is_refused(tmp_path, document, fault: str):
    change, says = REST[fault]
    document["releases"][0] |= change
    with pytest.raises(PlanError, match=says):
        load_plan(write_plan(tmp_path, document))
