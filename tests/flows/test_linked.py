"""A plan of linked tables, run for real: every member has a unit, and sizes match."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.bundle.reader import open_bundle
from tasks.bundle.verify import read_manifest, verify_files
from tests.conftest import write_plan

pytestmark = pytest.mark.usefixtures("prefect", "short_fits")

PLAN = {
    "dprelease": 1,
    "dataset": "homes",
    "source": "people.parquet",
    "rows": 500,
    "privacy_unit": {"column": "home", "max_rows": 3, "name": "household"},
    "neighbours": "add-remove",
    "linked": {"order": ["-age"], "shared": ["region"]},
    "budget": {
        "granted": {"alpha": "20", "beta": "1e-6", "gamma": "0"},
        "requested": {"alpha": "20", "beta": "1e-6", "gamma": "0"},
    },
    "columns": {
        "region": {"type": "categorical", "categories": ["north", "south"]},
        "age": {"type": "integer", "bounds": [0, 99]},
        "job": {"type": "categorical", "categories": ["yes", "no"], "nullable": True},
        "income": {"type": "continuous", "bounds": [0, 5000]},
    },
    "releases": [
        {
            "name": "homes",
            "kind": "microdata-margins",
            "columns": ["region", "age", "job", "income"],
            "bins": {"age": [0, 15, 40, 65, 100], "income": 4},
        },
        {"name": "sizes", "kind": "histogram", "columns": ["size", "region"]},
    ],
    "synthesis": [{"name": "homes", "from": "homes", "rows": 400}],
    "publication": {"title": "Homes and people", "csv": True},
}


def people() -> pd.DataFrame:
    random = np.random.default_rng(2)
    sizes = random.choice([1, 2, 3, 5], 500, p=[0.4, 0.3, 0.2, 0.1])
    home = np.repeat(np.arange(500), sizes)
    age = random.integers(0, 100, len(home))
    return pd.DataFrame(
        {
            "home": home,
            "region": np.where(home % 3 == 0, "south", "north"),
            "age": age,
            "job": np.where(age < 15, None, random.choice(["yes", "no"], len(home))),
            "income": random.uniform(0, 5000, len(home)),
        }
    )


@pytest.mark.slow
def test_units_and_members_are_published_and_fit_together(tmp_path):
    from flows.release import release

    people().to_parquet(tmp_path / "people.parquet")
    bundle = Path(release(str(write_plan(tmp_path, PLAN)), "r1", str(tmp_path / "out")))
    manifest = read_manifest(bundle)
    verify_files(bundle, manifest)
    (record,) = manifest.synthesis
    assert [file.path for file in record.microdata] == [
        "microdata/homes.parquet",
        "microdata/homes.members.parquet",
    ]
    units, members = (pd.read_parquet(bundle / file.path) for file in record.microdata)
    assert list(units) == ["number", "region", "size"]
    assert len(units) == 400
    assert list(members) == ["number", "place", "age", "job", "income"]
    counted = members.groupby("number")["place"].agg(["size", "max"])
    assert (counted["size"].to_numpy() == units["size"]).all()
    assert (counted["max"].to_numpy() == units["size"]).all()
    later = members["place"].to_numpy()[1:] > 1
    assert (np.diff(members["age"])[later] <= 0).all()  # the oldest first, inside bins too
    opened = open_bundle(bundle)
    assert len(opened.sample("homes", 7)["age.1"]) == 7
    assert abs(opened.total("sizes").value - 500) < 50
    report = (bundle / "report.html").read_text()
    assert f"{len(members):,} of their members" in report
    for file, frame in zip(record.microdata, (units, members), strict=True):
        assert f'<a href="{file.csv}">CSV</a>' in report
        assert len(pd.read_csv(bundle / file.csv)) == len(frame)
