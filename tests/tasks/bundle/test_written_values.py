"""Synthetic numbers are those that people write: multiples, levels and point masses of the plan."""

import numpy as np
import pytest

from schemas.documents.codebook import WARNING, codebook
from schemas.plan import Plan
from schemas.plan.synthesis import ASSUMED, NOT_DRAWN
from tasks.bundle.records import SyntheticRecords, synthetic_records
from tasks.report.synthetic import count_records
from tests.shortest import from_yaml
from tests.tasks.made_up import drawn_evenly

PLAN = """
rows: 3000
alpha: "60"
columns:
  hours: {type: integer, bounds: [0, 99], step: 5, point_masses: [0, 38], nullable: true}
  pay: {type: continuous, bounds: [0, 99999], step: 0.01, point_masses: [0, 99999]}
  income: {type: integer, levels: [0, 12000, 30000, 75000]}
  dose: {type: continuous, levels: [0.1, 0.25, 1.5], nullable: true}
  rate: {type: continuous, bounds: [0, 1], point_masses: [0]}
releases:
  - name: everybody
    kind: microdata-margins
    mechanism: discrete-laplace
    columns: [hours, pay, income, dose, rate]
    bins: {hours: [0, 20, 60, 100], pay: [0, 1000, 50000, 99999], rate: 2}
    rules:
      - if: {income: {below: 30000}}
        then: {pay: {below: 50000}}
      - if: {pay: [99999]}
        then: {rate: [0], dose: [1.5]}
  - {name: fine, kind: histogram, columns: [pay], bins: {pay: 300}}
synthesis:
  - {name: people, from: everybody, rows: 3000, within_bins: {pay: fine}}
"""


def planned(**changes: object) -> Plan:
    document = from_yaml(PLAN)
    for place, value in changes.items():
        column, _, key = place.partition("__")
        document["columns"][column][key] = value
    return Plan.model_validate(document)


@pytest.fixture(scope="module")
def made() -> SyntheticRecords:
    plan = planned()
    everybody, fine = plan.built.values()
    # What the records follow has a fifth at each point mass, as the others do.
    ends = np.repeat([0, fine.domain.size - 1], 600)
    draws = {"everybody": drawn_evenly(everybody), "fine": drawn_evenly(fine, ends)}
    return synthetic_records(plan, plan.synthesis[0], draws.__getitem__)


@pytest.mark.slow
def test_values_are_multiples_levels_and_point_masses(made):
    hours = made.columns["hours"]
    assert set(hours.compressed()) == {*range(0, 100, 5), 38}
    assert made.columns["income"].dtype.kind == "i"
    assert set(made.columns["income"]) == {0, 12000, 30000, 75000}
    assert set(made.columns["dose"].compressed()) == {0.1, 0.25, 1.5}
    pay = made.columns["pay"]
    assert {len(repr(value).partition(".")[2]) for value in pay.tolist()} <= {1, 2}
    assert 100 < (pay == 99999).sum() < 1500
    assert (made.columns["rate"] == 0).sum() > 100


def test_values_lie_in_their_cells_and_obey_the_rules(made):
    pay, income = made.columns["pay"], made.columns["income"]
    assert np.all(pay[income < 30000] < 50000)
    assert set(made.columns["rate"][pay == 99999]) == {0}
    assert set(made.columns["dose"][pay == 99999].tolist()) == {1.5}
    axis = made.domain.axes[1]
    counted = count_records(np.asarray(pay), axis)
    assert counted.tolist() == np.bincount(made.codes[:, 1], minlength=axis.size).tolist()


def test_levels_are_in_the_codebook():
    lines = codebook(None, planned()).splitlines()
    assert f'income,integer,,,12000,,0,75000,false,"{WARNING}"' in lines


def test_the_codebook_says_for_each_column_what_of_its_records_is_assumed_or_not_drawn():
    lines = codebook(None, planned()).splitlines()
    assumed = f'"{WARNING}. {ASSUMED} (people)"'
    assert f"rate,continuous,,,,,0.0,1.0,false,{assumed}" in lines
    # The values of pay follow a release inside their bins, and levels have no bins.
    assert {line.split(",")[0] for line in lines if ASSUMED in line} == {"rate", "hours"}
    document = from_yaml(PLAN)
    document["releases"] = [
        {"name": "f", "kind": "function", "columns": ["rate"], "bandwidth": 0.1}
    ]
    document["synthesis"] = [{"name": "people", "from": "f", "rows": 3000}]
    for budget in document["budget"].values():
        budget["beta"] = "1e-6"
    text = codebook(None, Plan.model_validate(document))
    assert f'rate,continuous,,,,,0.0,1.0,false,"{WARNING}. {NOT_DRAWN} (people)"' in text


def test_bins_without_a_multiple_are_refused():
    with pytest.raises(
        ValueError, match=r"the bin of pay from 0 to 1000 .* no multiple of .* 1000"
    ):
        planned(pay__step=1000)
    with pytest.raises(ValueError, match="a column of levels has no bins"):
        planned(pay__levels=[0, 99999], pay__step=None, pay__point_masses=[])


def test_a_cell_for_every_whole_number_has_no_room_for_a_step():
    document = from_yaml(PLAN)
    del document["releases"][0]["bins"]["hours"]
    with pytest.raises(ValueError, match="cell for each whole number of hours"):
        Plan.model_validate(document)
