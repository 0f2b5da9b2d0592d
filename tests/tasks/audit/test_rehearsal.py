"""The rehearsal stops a release whose survey would be cut or weighed otherwise than is declared."""

from dataclasses import replace

import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.errors import AuditError, DataError
from schemas.plan import Plan
from schemas.releases.base import SurveyFacts
from tasks.audit.audit import audit_shortly
from tasks.audit.rehearsal import rehearse, rehearse_shortly
from tasks.survey import linked, tally
from tasks.survey.bounding import PERIOD, keep_periods
from tasks.survey.linked import wide_records
from tests.bare import open_plan
from tests.conftest import audited, plan_of_every_kind
from tests.tasks.made_up_series import plan_of as series_of

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "neighbours", "invalid"),
    [
        ("row", "replace-one", "refuse"),
        (HOUSEHOLDS, "add-remove", "drop"),
    ],
)
def test_the_right_path_passes(unit, neighbours, invalid):
    rehearse_shortly(plan_with(unit, neighbours, invalid))


def plan_of_units(unit=HOUSEHOLDS, neighbours: str = "add-remove", invalid: str = "refuse") -> Plan:
    """A model of units with weights, in strata, and counts of the same records."""
    every = plan_of_every_kind()
    model = {"name": "pay", "kind": "model", "formula": "income ~ age + sex"}
    every["releases"] = [every["releases"][0], model]
    changes = {"privacy_unit": unit, "neighbours": neighbours, "invalid": invalid}
    changes |= {"weights": WEIGHTS, "strata": "region", "cluster": "age", "synthesis": []}
    return Plan.model_validate(every | changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "neighbours", "invalid"),
    [
        (HOUSEHOLDS, "replace-one", "own-cell"),
        (HOUSEHOLDS | {"max_rows": 1}, "add-remove", "clamp"),
    ],
)
def test_the_right_path_of_units_of_models_passes(unit, neighbours, invalid):
    rehearse_shortly(plan_of_units(unit, neighbours, invalid))


def of_half_the_weight(table, weights):
    return add_weight_steps(table, weights.model_copy(update={"largest": weights.largest / 2}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("keep_records", lambda t, unit: one_less(t, unit), id="too few are kept"),
        pytest.param("add_weight_steps", of_half_the_weight, id="weights are cut too far"),
    ],
)
def test_a_fault_of_units_of_models_stops_the_rehearsal(name, fault, monkeypatch):
    """More records, or larger weights, have no place in the domain."""
    monkeypatch.setattr(linked, name, fault)
    with pytest.raises(AuditError, match="not tallied as the audit assumes"):
        rehearse_shortly(plan_of_units())


@pytest.mark.slow
def test_what_is_found_passes():
    document = open_plan()
    document["columns"]["pay"] = {"type": "continuous", "bounds": "open", "nullable": True}
    pay = {"name": "pay", "kind": "quantiles", "column": "pay", "levels": ["0.5"]}
    document["releases"].append(pay)
    rehearse_shortly(Plan.model_validate(document | {"source": "withheld"}))


@pytest.mark.slow
@pytest.mark.parametrize("points", [[0, 9000], [0], [450]])
def test_every_kind_of_release_passes_with_levels_and_point_masses(points):
    every = plan_of_every_kind()
    every["columns"]["income"] |= {"point_masses": points, "step": 0.5}
    every["columns"]["rank"] = {"type": "integer", "levels": [-5, 0, 40]}
    every["releases"].append({"name": "ranks", "kind": "histogram", "columns": ["rank", "sex"]})
    every["releases"].append({"name": "earned", "kind": "model", "formula": "income ~ sex"})
    rehearse_shortly(Plan.model_validate(every))


def one_more(table, unit):
    return keep_records(table, unit.model_copy(update={"max_rows": unit.max_rows + 1}))


def one_less(table, unit):
    return keep_records(table, unit.model_copy(update={"max_rows": unit.max_rows - 1}))


def twice_as_heavy(table, weights):
    return add_weight_steps(table, weights.model_copy(update={"largest": 2 * weights.largest}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("keep_records", one_more, id="max_rows is one too large"),
        pytest.param("keep_records", one_less, id="max_rows is one too small"),
        pytest.param("add_weight_steps", twice_as_heavy, id="weights are not cut"),
        pytest.param(
            "count_cells",
            lambda table, axes, counted, invalid: count_cells(table, axes, None, invalid),
            id="records are counted for weights",
        ),
    ],
)
def test_a_fault_of_bounding_or_tally_stops_the_rehearsal(name, fault, monkeypatch):
    monkeypatch.setattr(tally, name, fault)
    with pytest.raises(AuditError, match="not tallied as the audit assumes"):
        rehearse_shortly(plan_with())


@pytest.mark.slow
def test_the_short_audit_rehearses(monkeypatch):
    monkeypatch.setattr(tally, "keep_records", one_more)
    with audited(), pytest.raises(AuditError, match="not tallied as the audit assumes"):
        audit_shortly.fn(plan_with())


def linked_plan(neighbours: str, order: list[str]) -> Plan:
    """Synthetic records and counts of households of up to three members."""
    every = plan_of_every_kind()
    every["budget"]["requested"]["beta"] = "0"
    couples = {"name": "couples", "kind": "histogram", "columns": ["size", "age.1", "sex.3"]}
    couples["bins"] = {"age.1": 6}
    homes = {
        "name": "homes",
        "kind": "microdata-margins",
        "columns": ["region", "sex", "age"],
        "bins": {"age": 6},
        "mechanism": "discrete-laplace",
    }
    changes = {
        "privacy_unit": HOUSEHOLDS,
        "neighbours": neighbours,
        "linked": {"order": order, "shared": ["region"]},
        "releases": [homes, couples],
        "synthesis": [],
    }
    return Plan.model_validate(every | changes)


@pytest.mark.slow
def test_the_right_path_of_wide_records_passes():
    rehearse_shortly(linked_plan("replace-one", ["region"]))


@pytest.mark.slow
def test_a_whole_rehearsal_passes_too():
    rehearse.fn(linked_plan("add-remove", ["-age"]))
    rehearse.fn(series_plan(3))


def of_all_units(table, unit, linked):
    """A member's place depends on the members of other households."""
    import ibis

    place = ibis.row_number().over(ibis.window(order_by=table["age"].desc()))
    shuffled = table.mutate(age=ibis.ifelse(place % 2 == 0, table["age"], 18))
    return wide_records(shuffled, unit, linked)


def of_wide_units(change: int):
    return lambda table, unit, linked: wide_records(
        table, unit.model_copy(update={"max_rows": unit.max_rows + change}), linked
    )


def in_reverse(table, unit, linked):
    return wide_records(table, unit, linked.model_copy(update={"order": ["age"]}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(of_wide_units(1), id="max_rows is one too large"),
        pytest.param(of_all_units, id="values depend on other households"),
        pytest.param(in_reverse, id="the order is another one"),
        pytest.param(
            lambda table, unit, linked: wide_records(
                table.mutate(home=table["home"].substr(0, 3)), unit, linked
            ),
            id="several households are one",
        ),
    ],
)
def test_a_fault_of_wide_records_stops_the_rehearsal(fault, monkeypatch):
    monkeypatch.setattr(tally, "wide_records", fault)
    with pytest.raises((AuditError, DataError), match=r"as the audit assumes|no cell|could not"):
        rehearse_shortly(linked_plan("add-remove", ["-age"]))


@pytest.mark.slow
def test_a_sensitivity_that_forgets_units_stops_the_rehearsal(monkeypatch):
    monkeypatch.setattr(Plan, "adjacency", Adjacency("add-remove", 1, unit="home"))
    with pytest.raises(AuditError, match="people: "):
        rehearse_shortly(plan_with())


@pytest.mark.slow
def test_a_sensitivity_that_forgets_weights_stops_the_rehearsal(monkeypatch):
    honest = SurveyFacts.weighted.fget

    def forgetful(facts):
        found = honest(facts)
        return replace(found, adjacency=replace(found.adjacency, most=facts.adjacency.most))

    monkeypatch.setattr(SurveyFacts, "weighted", property(forgetful))
    with pytest.raises(AuditError, match="population: "):
        rehearse_shortly(plan_with())


def series_plan(in_periods: int, neighbours: str = "add-remove") -> Plan:
    """Events of persons over four weeks."""
    series = {"period": "week", "periods": 4, "in_periods": in_periods, "run": 2}
    persons = {"column": "person", "max_rows": 2}
    return series_of(2, series=series, privacy_unit=persons, neighbours=neighbours)


@pytest.mark.slow
def test_the_right_path_of_a_series_passes():
    rehearse_shortly(series_plan(1, "replace-one"))


def of_periods(change: int):
    return lambda table, unit, periods, invalid: keep_periods(
        table, unit, periods._replace(most=periods.most + change), invalid
    )


def last_periods(table, unit, periods, invalid):
    """The unit's periods are counted from the last one back."""
    numbered = keep_periods(table, unit, periods._replace(most=periods.axis.size), invalid)
    last = numbered.group_by(unit.column).mutate(_last=lambda t: t[PERIOD].max())
    return last.filter(lambda t: t["_last"] - t[PERIOD] < periods.most).drop("_last")


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(of_periods(1), id="one period too many"),
        pytest.param(last_periods, id="the last periods"),
    ],
)
def test_a_fault_of_periods_stops_the_rehearsal(fault, monkeypatch):
    monkeypatch.setattr(tally, "keep_periods", fault)
    with pytest.raises(AuditError, match="not tallied as the audit assumes"):
        rehearse_shortly(series_plan(2))
