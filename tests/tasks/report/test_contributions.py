"""What each feature does to the decision value of a classifier, as its report draws it."""

import numpy as np
import pandas as pd
import pytest

import dprelease
from tasks.bundle.verify import read_manifest
from tasks.charts.svg import figure
from tasks.report.release import release_parts
from tests.bare import leave_out_audits

ROWS = 500


@pytest.fixture
def bundle(tmp_path, monkeypatch):
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
                "mechanism": "noisy-products",
                "features": ["age", "region"],
                "label": {"column": "works", "positive": ["yes"]},
            }
        ],
        "publication": {"title": "Work"},
    }
    leave_out_audits(monkeypatch.setattr)
    return dprelease.release(
        plan, survey, ledger=tmp_path / "ledger.sqlite", out=tmp_path, progress=False
    )


def test_every_feature_is_drawn_with_the_published_ends(bundle):
    (part,) = release_parts(bundle.reader.plan, read_manifest(bundle.path), bundle.path)
    by_age, by_region = part.drawn.figures
    assert "works = yes" in part.drawn.notes[0]
    assert by_age.title == "Contribution by age"
    assert [row[0] for row in by_region.table.rows] == ["north", "south", "null"]
    published = bundle.table("who-works.region")
    ends = ["contribution", "lower_90", "upper_90"]
    for shown, row in zip(by_region.table.rows, published[ends].to_numpy(), strict=True):
        assert shown[1:] == tuple(figure(float(value)) for value in row)
