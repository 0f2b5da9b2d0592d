"""A plan that asks for synthetic records and nothing else, run for real."""

from pathlib import Path

import pandas as pd
import pytest

from tasks.reader import open_bundle
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


def test_wide_columns_are_published_by_groups_and_records_in_their_own_categories(
    plan_path, plan_document
):
    from flows.release import release

    plan_document["releases"] = [
        {
            "name": "everyone",
            "kind": "microdata-margins",
            "columns": ["sex", "region", "age"],
            "compress": {"keep": 3},
        }
    ]
    plan_document["synthesis"] = [{"name": "records", "from": "everyone", "rows": ROWS}]
    path = write_plan(plan_path.parent, plan_document)
    bundle = open_bundle(release(str(path), "r1", str(path.parent / "out")))
    assert {"everyone.region", "everyone.age", "everyone.region.age"} <= set(bundle.tables)
    alone, pair = bundle.table("everyone.region"), bundle.table("everyone.sex.region")
    group = dict(zip(alone["region"].tolist(), alone["region_group"].tolist(), strict=True))
    assert sorted(set(group.values())) == [1, 2]
    records = pd.read_parquet(bundle.path / "microdata" / "records.parquet")
    counted = records.groupby(["sex", records["region"].map(group)]).size()
    for sex, number, count in zip(pair["sex"], pair["region_group"], pair["count"], strict=True):
        assert counted.get((sex, number), 0) == count
    assert records["age"].between(18, 89).all()
    sums = bundle.total("everyone.sex.region", lambda t: t["region_group"] == 1)
    assert sums.standard_error > 0
    supported = bundle.table("microdata/records.support")
    assert dict(zip(supported["columns"], supported["supported"], strict=True)) == {
        "sex": True,
        "region": True,
        "age": True,
        "sex x region": False,
        "sex x age": False,
        "region x age": False,
    }
    report = (bundle.path / "report.html").read_text()
    assert "group 1" in report
