"""Synthetic records carry a warning, wherever a reader may meet them."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

from schemas.bundle.grades import graded
from schemas.plan.synthesis import ASSUMED
from schemas.text import escape
from tasks.bundle.reader import BundleReader


@pytest.fixture
def bundle(every_kind):
    return BundleReader.open(next((every_kind / "out").glob("*/r1")))


@pytest.mark.slow
def test_every_synthetic_table_warns_with_its_factor_where_that_is_known(bundle):
    records = {record.name: record for record in bundle.manifest.synthesis}
    for name in ("everybody", "hundred", "from-counts"):
        known = records[name].understated
        assert 1 <= known.median <= known.one_in_ten
        assert f"a factor of about {known.median:.2g}, " in records[name].warning
    assert records["from-density"].understated is None
    assert "an unknown factor" in records["from-density"].warning


def test_the_warning_is_in_every_file_that_describes_the_records(bundle):
    readme = (bundle.path / "README.md").read_text()
    page = (bundle.path / "report.html").read_text()
    package = json.loads((bundle.path / "datapackage.json").read_text())
    described = {each["path"]: each.get("description") for each in package["resources"]}
    for record in bundle.manifest.synthesis:
        metadata = pq.read_schema(bundle.path / record.file.path).metadata
        assert metadata[b"dprelease.warning"].decode() == record.warning
        assert record.warning in readme
        assert described[record.file.path] == record.warning
        assert record.warning.split(":")[0] in page
        assert f"`{record.support.path}`" in readme
        support = pq.read_table(bundle.path / record.support.path).to_pylist()
        pairs = Counter(row["grade"] for row in support if row["ways"] == 2)
        assert record.pairs == pairs
        if pairs:
            assert f"Of {pairs.total()} pairs of columns, {graded(pairs)} (`" in readme
    for table in bundle.plan.synthesis:
        for note, columns in table.notes(bundle.plan.of_period).items():
            assert f"{note}: {', '.join(columns)}." in page
            assert f"{note}: {', '.join(map(escape, columns))}." in readme
    assert ASSUMED in readme
