"""What ``explain`` says of time and memory, from public sizes alone."""

import json

import pytest

from flows.cli import main
from schemas.plan import Plan, load_plan
from tasks.explain.work import work_of
from tests.conftest import ROOT
from tests.shortest import document

FAIR = ROOT / "deployments" / "plans" / "fair.yaml"


def made(columns: int, rows: int = 1000, **more: str) -> Plan:
    listed = {f"c{i}": {"type": "categorical", "categories": [1, 2, 3]} for i in range(columns)}
    release = {"name": "all", "kind": "microdata-margins", "columns": [*listed]} | more
    beta = "0" if more else "1e-6"
    return Plan.model_validate(document(listed, [release], alpha="2", beta=beta, rows=rows))


@pytest.mark.slow
def test_it_is_said_as_a_sentence_and_as_json(own_home, capsys):
    needed = work_of(load_plan(FAIR))
    assert main(["explain", str(FAIR)]) == 0
    assert f"A run takes about {needed.seconds:.0f} s" in capsys.readouterr().out
    assert main(["explain", str(FAIR), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["work"] == {"seconds": needed.seconds, "bytes": needed.bytes}
    assert sum(each["work"]["seconds"] for each in said["releases"]) < needed.seconds
    assert said["releases"][0]["errors"]
    assert said["releases"][1]["beta"] == "1/1400000"
    assert said["releases"][1]["numbers"] == 862
    assert said["budget"]["left"] == {"alpha": "2", "beta": "9/1000000", "gamma": "0"}
    assert said["granted_by"] == "plan"


@pytest.mark.parametrize("more", [{"columns": 30}, {"rows": 10**7}])
def test_larger_surveys_take_longer(
    more,
):  # fewer tables than ten columns have are fitted more often
    small, large = (work_of(made(**{"columns": 10} | each)) for each in ({}, more))
    assert large.seconds > small.seconds
    assert large.bytes >= small.bytes


def test_a_thresholded_histogram_takes_no_time_for_empty_cells():
    plan = made(30, kind="histogram", mechanism="thresholded-laplace")
    assert plan.built["all"].work.seconds < 1


MEASURED = {"fair": 11.1, "adult": 17.0, "nltcs": 15.7, "eusilc": 14.5, "acs_ma": 13.0}
"""Processor seconds of runs, by ``benchmarks.scale.work`` with one thread."""


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_stated_is_within_a_factor_two_of_what_runs_took(name):
    stated = work_of(load_plan(FAIR.with_name(f"{name}.yaml"))).seconds
    assert 0.5 < stated / MEASURED[name] < 2
