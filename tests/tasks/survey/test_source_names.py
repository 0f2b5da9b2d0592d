"""Columns whose names in the survey stay there: the plan's name is public, and theirs is nowhere."""

import pandas as pd
import pytest
import yaml

from dpcore.errors import DataError, PlanError
from schemas.plan import load_plan, published_plan
from tasks.audit.rehearsal import rehearse_shortly
from tasks.draw import tally_releases
from tasks.survey.steps import ingest_survey, validate_survey
from tests import bare
from tests.tasks.survey.tables import assert_tells_nothing

OWN = {
    "home": "#SECRET_7391",
    "weight": " w ",
    "sex": "=Sex; \n?",
    "age": "987654321",
    "born": "Dr. X",
}


@pytest.fixture
def plans(tmp_path):
    """The same plan over the same records, under public names and under the survey's own."""
    records = {
        "home": ["a", "a", "b", "c"],
        "weight": [1.0, 2.0, 3.0, 4.0],
        "sex": ["F", "M", "F", "M"],
        "age": [20, 35, 50, 20],
        "born": ["2001-01-31", "2002-02-01", "2003-03-01", "2004-12-01"],
    }
    public = yaml.safe_load(bare.PLAN) | {
        "rows": 4,
        "neighbours": "add-remove",
        "synthesis": [],
        "source": str(tmp_path / "public.parquet"),
    }
    public["privacy_unit"] = {"column": "home", "max_rows": 2}
    public["weights"] = {"column": "weight", "largest": "4", "step": "1", "total": "10"}
    public["columns"] |= {
        "month": {
            "type": "integer",
            "bounds": [1, 12],
            "from": {"column": "born", "part": "month"},
        },
    }
    public["releases"] = [
        {
            "name": "people",
            "kind": "histogram",
            "columns": ["sex", "age", "month"],
            "weighted": True,
        },
    ]
    pd.DataFrame(records).to_parquet(tmp_path / "public.parquet")
    pd.DataFrame(records).rename(columns=OWN).to_parquet(tmp_path / "own.parquet")
    own = {**public, "source": str(tmp_path / "own.parquet"), "columns": {**public["columns"]}}
    own["privacy_unit"] = public["privacy_unit"] | {"source_name": OWN["home"]}
    own["weights"] = public["weights"] | {"source_name": OWN["weight"]}
    for name, of in {"sex": "sex", "age": "age", "month": "born"}.items():
        own["columns"][name] = public["columns"][name] | {"source_name": OWN[of]}
    return public, own


@pytest.mark.slow
def test_what_is_counted_and_what_is_published_are_those_of_the_public_names(plans, tmp_path):
    public, own = map(load_plan, plans)
    assert own.public() == public.public()
    assert own.digest == public.digest
    assert published_plan(own.public()).digest == own.digest
    rehearse_shortly(own)
    found = []
    for plan in (public, own):
        survey = ingest_survey.fn(plan, tmp_path / f"work{len(found)}")
        validate_survey.fn(plan, survey)
        found.append(tally_releases(plan, list(plan.built), survey)["people"].dense().tolist())
    assert found[0] == found[1]
    assert sum(found[0]) == 10


def test_a_name_that_is_not_there_is_not_shown(plans, tmp_path):
    document = plans[1]
    document["source"] = plans[0]["source"]
    plan = load_plan(document)
    with pytest.raises(DataError) as caught:
        validate_survey.fn(plan, ingest_survey.fn(plan, tmp_path / "work"))
    assert_tells_nothing(caught.value)
    for name in ("home", "weight", "sex", "age", "month"):
        assert f"column '{name}': the table lacks it (names must match" in str(caught.value)


def test_a_column_that_is_not_published_is_in_no_other_role(plans):
    document = plans[1]
    document["columns"]["sex"] = document["columns"]["sex"] | {"source_name": OWN["home"]}
    with pytest.raises(PlanError, match=r"privacy_unit\.column: 'home' is already used"):
        load_plan(document)
