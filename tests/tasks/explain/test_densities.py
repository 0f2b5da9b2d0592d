"""What else could estimate the density of a plan's columns, and which is best."""

import pytest

from schemas.plan import load_plan
from tasks.explain.densities import found_ways, way_rows
from tests.conftest import write_plan

MAP = {"name": "map", "kind": "density", "columns": ["age", "income"], "bandwidth": 0.1}


def plan_of(tmp_path, document, *sections, beta="0"):
    document["releases"] = list(sections)
    document["budget"]["requested"] |= {"beta": beta, "gamma": "0"}
    for key in ("synthesis", "weights", "analyses"):
        document.pop(key, None)
    return load_plan(write_plan(tmp_path, document))


def test_kinds_and_mechanisms_are_compared_by_their_whole_error(tmp_path, plan_document):
    plan = plan_of(tmp_path, plan_document, MAP | {"mechanism": "binned-laplace"})
    found = found_ways(plan)
    rows = way_rows(plan, found)
    assert {(row["kind"], row["mechanism"]) for row in rows} == {
        ("density", "binned-laplace (as planned)"),
        ("density", "spectral-gaussian"),
        ("function", "gaussian-process"),
    }
    errors = [way.error for way in found["map"]]
    assert errors == sorted(errors)
    planned = next(way for way in found["map"] if way.section == plan.section("map"))
    stated = {e.quantity: e.value for e in plan.built["map"].expected_error()}
    assert planned.error == pytest.approx(
        stated["typical error of the density, relative to a uniform one"]
    )
    needs_beta = {row["mechanism"]: row["beta"] != "0" for row in rows}
    assert needs_beta["gaussian-process"]
    assert not needs_beta["binned-laplace (as planned)"]
