"""A plan that asks for synthetic records and nothing else, run for real."""

from pathlib import Path

import pandas as pd
import pytest

from tasks.verify import read_manifest, verify_files
from tests.conftest import ROWS, write_plan

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.mark.parametrize("choose", ["fixed", "adaptive"])
def test_microdata_is_published_in_the_surveys_own_columns(plan_path, plan_document, choose):
    from flows.release import release

    plan_document["releases"] = [
        {
            "name": "everyone",
            "kind": "microdata-margins",
            "columns": ["sex", "region", "age", "children", "income"],
            "bins": {"income": 10, "age": 6},
            "choose": choose,
        }
    ]
    plan_document["synthesis"] = [{"name": "records", "from": "everyone", "rows": ROWS}]
    path = write_plan(plan_path.parent, plan_document)
    bundle = Path(release(str(path), "r1", str(path.parent / "out")))
    manifest = read_manifest(bundle)
    verify_files(bundle, manifest)
    assert manifest.releases[0].kind == "microdata-margins"
    records = pd.read_parquet(bundle / "microdata" / "records.parquet")
    assert list(records) == ["sex", "region", "age", "children", "income"]
    assert len(records) == ROWS
    assert set(records["sex"]) <= {"F", "M"}
    assert records["age"].between(18, 89).all()
    assert records["income"].between(0, 9000).all()
    counted = pd.read_parquet(bundle / "tables" / "everyone.sex.children.parquet")
    expected = records.groupby(["sex", "children"]).size()
    found = counted.set_index(["sex", "children"])["count"]
    assert found[found > 0].equals(expected.reindex(found[found > 0].index))
    assert found.sum() == ROWS
