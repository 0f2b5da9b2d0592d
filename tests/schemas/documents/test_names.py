"""A bundle's documents are valid for columns in any script, for names with blanks, and where numbers
have nulls."""

import json
from pathlib import Path
from xml.etree import ElementTree

import frictionless
import pytest
import yaml

from dpcore.estimates import joined
from schemas.documents.terms import identifier
from schemas.plan import Plan
from schemas.releases import base
from tasks.bundle import publish
from tasks.bundle.verify import read_manifest, verify_files
from tests.shortest import document
from tests.tasks.made_up import publish_made_up

CATEGORIES = {
    "العمر": ["м", "ж ж"],
    "年龄": [1, 2],
    "body mass": [1.5, 2.0],
    "𠀀": [True, False],
    "उम्र": ["nan", "b"],
    "ano": [1, 2],
    "año": [1.5, 2.0],
    "nai\u0308ve": [True, False],
}
"""Columns of every type, of which the first is the only one without nulls."""
WHOLE = {"große": [1, 2], "größe": [1.5, 2.0]}
NAMES = [*CATEGORIES, *WHOLE, "часы"]
EXACT = {"mechanism": "discrete-laplace"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("names")
    columns: dict[str, dict] = {
        name: {"type": "categorical", "categories": values, "nullable": i > 0}
        for i, (name, values) in enumerate(CATEGORIES.items())
    }
    columns |= {n: {"type": "categorical", "categories": values} for n, values in WHOLE.items()}
    columns["часы"] = {"type": "continuous", "levels": [0.5, 1.5], "nullable": True}
    columns |= {name: {"type": "integer", "bounds": [0, 1]} for name in SMALL}
    releases = [
        {"name": "m", "kind": "margins", "columns": NAMES, "ways": 1, **EXACT},
        {"name": "h", "kind": "histogram", "columns": ["body mass", "年龄", "часы"]},
        {"name": "r", "kind": "microdata-margins", "columns": [*NAMES[:5], "часы"], **EXACT},
        {"name": "pairs", "kind": "margins", "columns": [*NAMES, *SMALL], "ways": 2, **EXACT},
    ]
    more = {
        "synthesis": [{"name": "records", "from": "r", "rows": 50}],
        "publication": {"title": "Names", "csv": True, "replicates": 2},
    }
    plan = Plan.model_validate(document(columns, releases, alpha="9", **more))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPRELEASE_HOME", str(work / "home"))
        for module in (base, joined, publish):
            patch.setattr(module, "MOST_FILES", 100)
        return publish_made_up(plan, "r", work)


SMALL = [f"ж{i}" for i in range(5)]
"""With these, all pairs are in one file, in which every column has nulls."""


@pytest.mark.slow
def test_frictionless_finds_every_table_valid_and_every_name_its_own(bundle):
    package = frictionless.Package(str(bundle / "datapackage.json"))
    assert package.get_resource("tables-pairs").path == "tables/pairs.parquet"
    report = package.validate()
    assert report.valid, report.flatten(["name", "fieldName", "type", "note"])
    assert len({resource.name for resource in package.resources}) == len(package.resources)
    fields = {f.name: f for f in package.get_resource("tables-m.ano").schema.fields}
    assert fields["ano"].constraints == {"enum": [1, 2]}


@pytest.mark.slow
def test_mlcroissant_finds_no_fault_and_reads_the_records(bundle):
    mlcroissant = pytest.importorskip("mlcroissant")
    dataset = mlcroissant.Dataset(bundle / "croissant.json")
    assert not dataset.metadata.issues.errors
    for name in ("tables-m.body-mass", identifier("tables-m.年龄")):
        assert next(iter(dataset.records(name)))


def test_every_id_of_croissant_is_there_once_and_has_no_blank(bundle):
    described = json.loads((bundle / "croissant.json").read_text(encoding="utf-8"))
    records = described["recordSet"]
    ids = [each["@id"] for group in (*records, {"field": records}) for each in group["field"]]
    assert len(set(ids)) == len(ids)
    assert not any(sign.isspace() for each in ids for sign in each)


def test_the_other_documents_name_every_column_as_it_is_written(bundle):
    book = ElementTree.parse(bundle / "ddi.xml")
    assert [v.get("name") for v in book.findall(".//{*}var")] == [*NAMES, *SMALL]
    dataset = json.loads((bundle / "dcat.json").read_text(encoding="utf-8"))
    assert {*NAMES} <= {*dataset["keyword"]}
    record = yaml.safe_load((bundle / "registry.yaml").read_text(encoding="utf-8"))
    assert ", ".join(NAMES) in record["deployment"]["dp_variant"]["data_domain"]
    assert verify_files(bundle, read_manifest(bundle))
