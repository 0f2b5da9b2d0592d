"""What each feature does to the decision value of a classifier, as its report draws it."""

import re

import numpy as np
import pandas as pd
import pytest

import dprelease
from tasks.bundle.verify import read_manifest
from tasks.charts.svg import figure
from tasks.report.release import release_parts

ROWS = 500
SLOW = pytest.param("noisy-gradients", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["noisy-products", SLOW])
def bundle(request, tmp_path_factory):
    random = np.random.default_rng(0)
    age, region = random.integers(18, 90, ROWS), random.choice(["north", "south"], ROWS)
    survey = pd.DataFrame(
        {
            "age": pd.Series(age).astype("Int64").mask(age % 7 == 0),
            "region": pd.Series(region).mask(age % 5 == 0),
            "works": np.where(age < 60, "yes", "no"),
        }
    )
    budget = {"alpha": "2", "beta": "1e-6", "gamma": "0"}
    plan = {
        "dprelease": 1,
        "dataset": "work",
        "rows": ROWS,
        "privacy_unit": "row",
        "neighbours": "replace-one",
        "budget": {"granted": budget, "requested": budget},
        "columns": {
            "age": {"type": "integer", "bounds": [18, 89], "nullable": True},
            "region": {
                "type": "categorical",
                "categories": ["north", "south"],
                "nullable": True,
            },
            "works": {"type": "categorical", "categories": ["no", "yes"]},
        },
        "releases": [
            {
                "name": "who-works",
                "kind": "classifier",
                "mechanism": request.param,
                "features": ["age", "region"],
                "label": {"column": "works", "positive": ["yes"]},
            }
        ],
        "publication": {"title": "Work"},
    }
    folder = tmp_path_factory.mktemp("work")
    return dprelease.release(
        plan, survey, ledger=folder / "ledger.sqlite", out=folder, progress=False
    )


def test_every_feature_is_drawn_with_the_published_ends(bundle):
    (part,) = release_parts(bundle.reader.plan, read_manifest(bundle.path), bundle.path)
    by_age, by_region = part.drawn.figures
    assert "works = yes" in part.drawn.notes[0]
    if bundle.reader.plan.section("who-works").mechanism == "noisy-gradients":
        assert by_age.title == "Decision value by age"
        age = re.search(r"middle: age at (\d+), region at (\w+)", by_region.says)
        assert age
        assert age[2] in ("north", "south")
        middle = {"age": np.array([float(age[1])]), "region": np.array(["south"], dtype=object)}
        found = bundle.evaluate("who-works", middle)
        expected = found[["decision", "lower_90", "upper_90"]].to_numpy()[0]
        (row,) = [row for row in by_region.table.rows if row[0] == "south"]
        assert row[1:] == tuple(figure(float(value)) for value in expected)
        return
    assert by_age.title == "Contribution by age"
    assert [row[0] for row in by_region.table.rows] == ["north", "south", "null"]
    published = bundle.table("who-works.region")
    ends = ["contribution", "lower_90", "upper_90"]
    for shown, row in zip(by_region.table.rows, published[ends].to_numpy(), strict=True):
        assert shown[1:] == tuple(figure(float(value)) for value in row)
