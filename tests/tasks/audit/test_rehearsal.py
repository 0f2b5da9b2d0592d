"""The short audit stops a release whose survey would be cut or weighed otherwise than is declared."""

from dataclasses import replace

import pytest

from dpcore.adjacency import Adjacency
from dpcore.errors import AuditError
from schemas.plan import Plan
from schemas.releases.base import SurveyFacts
from tasks.audit.audit import audit_shortly
from tasks.audit.rehearsal import rehearse_shortly
from tasks.survey import tally
from tasks.survey.bounding import STEPS
from tests.conftest import plan_of_every_kind

pytestmark = pytest.mark.usefixtures("own_home")

HOUSEHOLDS = {"column": "home", "max_rows": 3}
WEIGHTS = {"column": "w", "largest": "4", "step": "0.5", "total": 800}
add_weight_steps, keep_records, count_cells = (
    tally.add_weight_steps,
    tally.keep_records,
    tally.count_cells,
)


def plan_with(unit=HOUSEHOLDS, neighbours: str = "add-remove", invalid: str = "refuse") -> Plan:
    """One histogram of records and one of weights."""
    every = plan_of_every_kind()
    people = every["releases"][0]
    every["releases"] = [people, people | {"name": "population", "weighted": True}]
    every["budget"]["requested"]["beta"] = "0"
    changes = {"privacy_unit": unit, "neighbours": neighbours, "invalid": invalid}
    return Plan.model_validate(every | changes | {"weights": WEIGHTS, "synthesis": []})


@pytest.mark.parametrize(
    ("unit", "neighbours", "invalid"),
    [
        ("row", "replace-one", "refuse"),
        ("row", "add-remove", "clamp"),
        (HOUSEHOLDS, "replace-one", "own-cell"),
        (HOUSEHOLDS, "add-remove", "drop"),
    ],
)
def test_the_right_path_passes(unit, neighbours, invalid):
    rehearse_shortly(plan_with(unit, neighbours, invalid))


def test_every_kind_of_release_passes():
    rehearse_shortly(Plan.model_validate(plan_of_every_kind()))


def test_levels_and_point_masses_pass():
    every = plan_of_every_kind()
    every["columns"]["income"] |= {"point_masses": [0, 9000], "step": 0.5}
    every["columns"]["rank"] = {"type": "integer", "levels": [-5, 0, 40]}
    every["releases"].append({"name": "ranks", "kind": "histogram", "columns": ["rank", "sex"]})
    rehearse_shortly(Plan.model_validate(every))


def one_more(table, unit):
    return keep_records(table, unit.model_copy(update={"max_rows": unit.max_rows + 1}))


def one_less(table, unit):
    return keep_records(table, unit.model_copy(update={"max_rows": unit.max_rows - 1}))


def twice_as_heavy(table, weights):
    return add_weight_steps(table, weights.model_copy(update={"largest": 2 * weights.largest}))


def rounded_to_one(table, weights):
    return table.mutate(**{STEPS: 1})


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("keep_records", one_more, id="max_rows is one too large"),
        pytest.param("keep_records", one_less, id="max_rows is one too small"),
        pytest.param("keep_records", lambda table, unit: table, id="max_rows is forgotten"),
        pytest.param("add_weight_steps", twice_as_heavy, id="weights are not cut"),
        pytest.param("add_weight_steps", rounded_to_one, id="weights are not read"),
        pytest.param(
            "count_cells",
            lambda table, axes, counted, invalid: count_cells(table, axes, None, invalid),
            id="records are counted for weights",
        ),
    ],
)
def test_a_fault_of_bounding_or_tally_stops_the_short_audit(name, fault, monkeypatch):
    monkeypatch.setattr(tally, name, fault)
    with pytest.raises(AuditError, match="not tallied as the audit assumes"):
        audit_shortly.fn(plan_with())


def test_a_sensitivity_that_forgets_units_stops_the_short_audit(monkeypatch):
    monkeypatch.setattr(Plan, "adjacency", Adjacency("add-remove", 1, unit="home"))
    with pytest.raises(AuditError, match="people: "):
        audit_shortly.fn(plan_with())


def test_a_sensitivity_that_forgets_weights_stops_the_short_audit(monkeypatch):
    honest = SurveyFacts.weighted.fget

    def forgetful(facts):
        found = honest(facts)
        return replace(found, adjacency=replace(found.adjacency, most=facts.adjacency.most))

    monkeypatch.setattr(SurveyFacts, "weighted", property(forgetful))
    with pytest.raises(AuditError, match="population: "):
        audit_shortly.fn(plan_with())
