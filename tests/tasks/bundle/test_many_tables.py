"""A release of many tables is one file, which says all that a file for each table would."""

import numpy as np
import pandas as pd
import pytest

import dprelease
from dpcore.estimates import joined
from dpcore.releases.table import MOST_FILES
from schemas.plan import Plan
from schemas.releases import base
from tasks.bundle import publish
from tasks.bundle.reader import BundleReader
from tasks.workplace.job import ReleaseJob
from tests.shortest import document
from tests.tasks.made_up import publish_made_up

pytestmark = pytest.mark.usefixtures("short_fits")

SMALL = {f"c{i}": {"type": "integer", "bounds": [0, 1]} for i in range(13)}
COLUMNS = {
    "sex": {"type": "categorical", "categories": ["F", "M"], "nullable": True},
    "age": {"type": "continuous", "bounds": [0, 90]},
    "trade": {"type": "categorical", "categories": [f"trade {i}" for i in range(30)]},
    **SMALL,
}
EVERYONE = {
    "name": "everyone",
    "kind": "microdata-margins",
    "columns": [*COLUMNS],
    "bins": {"age": [0, 20, 40, 90]},
}
PUBLICATION = {"title": "People", "csv": True, "replicates": 12}
PLAN = document(COLUMNS, [], alpha="6", beta="1e-6", rows=2000, publication=PUBLICATION)
FEW = 100
ALONE = {"name": "sexes", "kind": "histogram", "columns": ["sex", "c0"]}


def plan_of(*releases: dict) -> Plan:
    return Plan.model_validate(PLAN | {"releases": list(releases)})


@pytest.fixture
def few_files(monkeypatch):
    """A release of so many tables as a test makes shares a file."""
    for module in (base, joined, publish):
        monkeypatch.setattr(module, "MOST_FILES", FEW)


@pytest.mark.usefixtures("few_files")
@pytest.mark.slow
def test_each_table_is_what_a_file_of_its_own_would_be(tmp_path, monkeypatch):
    """Also with best estimates, which a histogram of two columns adds."""
    plan = plan_of(EVERYONE, ALONE)
    path = publish_made_up(plan, "r", tmp_path)
    bundle = BundleReader.open(path)
    assert len(list(path.glob("tables/*.parquet"))) == len(list(path.glob("tables/*.csv"))) == 2
    for module in (base, joined, publish):
        monkeypatch.setattr(module, "MOST_FILES", MOST_FILES)
    (alone := tmp_path / "alone").mkdir()
    record = publish.write_release.fn(ReleaseJob(plan, "r"), "everyone", alone)
    assert len(record.files) > FEW
    published = {table.name: table for each in bundle.manifest.releases for table in each.tables}
    assert [*bundle.tables][: len(record.files)] == [file.name for file in record.files]
    frames = dprelease.open_bundle(bundle.path)
    for file in record.files:
        frame = pd.read_parquet(alone / file.path)
        found = bundle.table(file.name)
        assert set(file.columns) <= set(found)
        assert bundle.tables[file.name].rows == len(frame)
        for name in file.columns:
            empty = np.ma.getmaskarray(found[name])
            assert empty.tolist() == frame[name].isna().tolist()
            assert np.ma.getdata(found[name])[~empty].tolist() == frame[name][~empty].tolist()
        expected = pd.read_parquet(alone / file.replicates.path).to_numpy().T
        unbiased = published[file.name].replicates.column
        if file.replicates.column == unbiased:
            again = frames.table(file.name, replicates=True).filter(like="replicate_")
            np.testing.assert_array_equal(again.to_numpy().T, expected)


@pytest.mark.slow
@pytest.mark.usefixtures("few_files")
def test_sums_of_a_table_among_many_are_known_with_their_errors(tmp_path):
    bundle = BundleReader.open(publish_made_up(plan_of(EVERYONE, ALONE), "r", tmp_path))
    one, other = (
        bundle.total(f"everyone.sex.{name}", lambda t: t["sex"] == "F") for name in ("c0", "c1")
    )
    assert one.value == pytest.approx(other.value)
    assert 0 < one.standard_error == pytest.approx(other.standard_error)
    assert bundle.total("everyone.age.c1", lambda t: t["age_from"] < 40).standard_error > 0
    assert bundle.sources("everyone.sex.c1") == ["everyone", "sexes"]


@pytest.mark.usefixtures("few_files")
def test_a_column_with_the_name_of_the_column_of_tables_is_refused():
    columns = COLUMNS | {"Table_Name": SMALL["c0"]}
    releases = [EVERYONE | {"columns": [*columns]}]
    with pytest.raises(ValueError, match="rename the column"):
        Plan.model_validate(PLAN | {"columns": columns, "releases": releases})
