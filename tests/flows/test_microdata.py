"""A plan that asks for synthetic records and nothing else, run for real."""

from pathlib import Path

import pandas as pd
import pytest

from tasks.bundle.verify import read_manifest, verify_files
from tests.conftest import ROWS, write_plan

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.mark.slow
def test_microdata_is_published_in_the_surveys_own_columns(plan_path, plan_document):
    from flows.release import release

    plan_document["releases"] = [
        {
            "name": "everyone",
            "kind": "microdata-margins",
            "columns": ["sex", "region", "age", "children", "income"],
            "bins": {"income": 10, "age": 6},
            "also": [["sex", "children", "age"]],
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
    support = pd.read_parquet(bundle / "microdata" / "records.support.parquet").set_index("columns")
    assert set(support["grade"]) <= {"accurate", "rough", "noise"}
    together = (support["distance"] + support["expected_distance"]) <= 0.1
    assert ((support["grade"] == "accurate") == together).all()
    triples = {"sex x age x children"}
    assert set(support.index[support["ways"] == 3]) == triples
    assert len(support) == 5 + 10 + len(triples)
    names = [triple.replace(" x ", ".") for triple in triples]
    assert all((bundle / "tables" / f"everyone.{name}.parquet").is_file() for name in names)
