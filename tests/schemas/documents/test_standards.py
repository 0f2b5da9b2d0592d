"""A bundle in the words of others: each document against the validator or schema of its standard."""

import csv
import hashlib
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import frictionless
import jsonschema
import pyarrow.parquet as pq
import pytest
import yaml

from dpcore.accounting.budget import decimal_text
from dpcore.errors import BundleError
from schemas.bundle.manifest import Guarantee, Manifest
from schemas.documents import DOCUMENTS, documents
from schemas.documents.registry import _preprocessing, _privacy_loss, _unprotected
from schemas.plan import Plan, load_plan
from tasks.bundle.publish import _guarantee
from tasks.bundle.verify import read_manifest, verify_files
from tasks.report.page import columns_table
from tests.bare import leave_out_audits, release
from tests.conftest import write_plan
from tests.shortest import from_yaml

PUBLISHED = Path(__file__).parent / "published"
STATED = {
    "publisher": "Statistics Office",
    "contact": "Help desk <help@statistics.example.org>",
    "curator_type": "Government",
    "region": "Nowhere",
    "intended_use": "Tests",
    "licence": "CC0-1.0",
}

LICENCES = {
    "CC BY 4.0, https://example.org/by": {"path": "https://example.org/by"},
    "As the office allows": {"path": "report.html"},
}


@pytest.fixture
def bundle(plan_document, survey, tmp_path, short_fits, monkeypatch):
    leave_out_audits(monkeypatch.setattr)
    survey.to_parquet(tmp_path / "survey.parquet")
    # Each file of replicates is read number by number.
    plan_document["publication"] |= STATED | {"replicates": 2}
    plan_document["columns"]["age"] |= {"unit": "years", "description": "Age last birthday"}
    plan_document["columns"]["region"]["labels"] = {"north": "The north"}
    return release(write_plan(tmp_path, plan_document), "r1", tmp_path / "out")


def without(manifest: Manifest, *names: str) -> Manifest:
    """The manifest of a plan whose publication does not state these."""
    publication = {k: v for k, v in manifest.plan["publication"].items() if k not in names}
    return manifest.model_copy(update={"plan": manifest.plan | {"publication": publication}})


def faults(schema: str, document: object) -> list[str]:
    """What a published schema finds wrong."""
    published = yaml.safe_load((PUBLISHED / schema).read_text())
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(published, format_checker=checker)
    return [error.message for error in validator.iter_errors(document)]


@pytest.mark.slow
def test_every_document_says_what_its_standard_asks_for(bundle):
    """One bundle, looked at from all sides: making it is what takes the time."""
    manifest = read_manifest(bundle)
    texts = documents(manifest)
    assert {path: (bundle / path).read_text() for path in DOCUMENTS} == texts
    listed = (bundle / "SHA256SUMS").read_text()
    assert all(f"  {path}\n" in listed for path in DOCUMENTS)
    _check_package(bundle, manifest)
    _check_registry(manifest, texts["registry.yaml"])
    _check_dcat(manifest, json.loads(texts["dcat.json"]))
    _check_croissant(bundle, json.loads(texts["croissant.json"]))
    _check_ddi(bundle, manifest, texts["ddi.xml"])
    _check_codebook(texts["codebook.csv"])
    _check_tampering(bundle, manifest)


def _check_package(bundle: Path, manifest: Manifest) -> None:
    package = frictionless.Package(str(bundle / "datapackage.json"))
    report = package.validate()
    assert report.valid, report.flatten(["type", "note"])
    beside = {t.replicates.path for t in manifest.tables if t.replicates}
    assert {r.path for r in package.resources} == {t.path for t in manifest.tables} | beside
    fields = {r.path: {f.name: f for f in r.schema.fields} for r in package.resources}
    people = fields["tables/people.parquet"]
    assert people["region"].constraints["enum"] == ["north", "south", "east", "west"]
    assert people["region"].to_descriptor()["categories"][0] == {
        "value": "north",
        "label": "The north",
    }
    assert people["age_from"].description == "age at least: Age last birthday"
    assert people["age_from"].to_descriptor()["unit"] == "years"
    records = fields["microdata/everybody.parquet"]
    assert records["income"].constraints == {"minimum": 0, "maximum": 9000, "required": True}
    assert "required" not in records["region"].constraints
    people = pq.read_schema(bundle / "microdata" / "everybody.parquet")
    assert (people.field("income").nullable, people.field("region").nullable) == (False, True)
    licence = {"name": "CC0-1.0", "path": "https://spdx.org/licenses/CC0-1.0.html"}
    assert package.licenses == [licence]
    for text, licence in LICENCES.items():
        publication = manifest.plan["publication"] | {"licence": text}
        plan = manifest.plan | {"publication": publication}
        described = documents(manifest.model_copy(update={"plan": plan}))["datapackage.json"]
        assert json.loads(described)["licenses"] == [licence | {"title": text}]
        frictionless.Package.from_descriptor(json.loads(described), basepath=str(bundle))
    # The validator has power: a bound that the records break is found.
    descriptor = json.loads((bundle / "datapackage.json").read_text())
    (resource,) = [r for r in descriptor["resources"] if r["path"] == "microdata/everybody.parquet"]
    (income,) = [f for f in resource["schema"]["fields"] if f["name"] == "income"]
    income["constraints"]["maximum"] = 10
    broken = frictionless.Package.from_descriptor(descriptor, basepath=str(bundle))
    assert not broken.get_resource(resource["name"]).validate().valid


def _check_croissant(bundle: Path, dataset: dict) -> None:
    files = {file["@id"]: file for file in dataset["distribution"]}
    for path, file in files.items():
        assert file["sha256"] == hashlib.sha256((bundle / path).read_bytes()).hexdigest()
    assert dataset["license"] == "https://spdx.org/licenses/CC0-1.0.html"
    assert dataset["citeAs"].startswith("Statistics Office (")
    for records in dataset["recordSet"]:
        for field in records["field"]:
            path = field["source"]["fileObject"]["@id"]
            assert field["source"]["extract"]["column"] in pq.read_schema(bundle / path).names


def _check_ddi(bundle: Path, manifest: Manifest, text: str) -> None:
    order = yaml.safe_load((PUBLISHED / "ddi.yaml").read_text())
    root = ElementTree.fromstring(text)

    def local(element: ElementTree.Element) -> str:
        return element.tag.removeprefix("{ddi:codebook:2_5}")

    for element in root.iter():
        places = [order[local(element)].index(local(child)) for child in element]
        assert places == sorted(places), local(element)
    variables = {v.get("name"): v for v in root.iter("{ddi:codebook:2_5}var")}
    assert list(variables) == list(manifest.plan["columns"])
    region = [c.findtext("{*}catValu") for c in variables["region"].findall("{*}catgry")]
    assert region == ["north", "south", "east", "west", None]
    labels = [c.findtext("{*}labl") for c in variables["region"].findall("{*}catgry")]
    assert (labels[0], labels[-1]) == ("The north", "not stated")
    assert variables["age"].find("{*}valrng/{*}range").get("max") == "89"
    files = [f"F{i}" for i, made in enumerate(manifest.synthesis, 1) if "age" in made.file.columns]
    assert variables["age"].get("files").split() == files


def _check_registry(manifest: Manifest, text: str) -> None:
    record = yaml.safe_load(text)
    assert faults("registry.yaml", record) == []
    details = record["deployment"]["deployment_model"]["release_type_details"]
    assert details.startswith(
        f"This release spent alpha = {decimal_text(manifest.guarantee.alpha)},"
    )
    assert record["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    assert manifest.guarantee.domain.startswith("tables that fit the plan: they have its columns")
    assert manifest.guarantee.domain in record["deployment"]["dp_variant"]["data_domain"]
    assert record["deployment"]["basic"]["data_product_type"] == "Synthetic data"
    once = record["deployment"]["deployment_model"]
    assert (once["release_type"], once["data_source_type"]) == ("One release", "Static")
    _check_products(manifest)
    assert record["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "epsilon": 4.0,
        "delta": 1e-6,
    }
    unstated = documents(without(manifest, "curator_type", "region"))["registry.yaml"]
    assert faults("registry.yaml", yaml.safe_load(unstated)) == [
        "'data_curator_type' is a required property"
    ]
    random = manifest.guarantee.model_dump() | {"gamma": "0.01"}
    weaker = manifest.model_copy(update={"guarantee": Guarantee.model_validate(random)})
    record = yaml.safe_load(documents(weaker)["registry.yaml"])
    assert faults("registry.yaml", record) == []
    assert record["deployment"]["dp_variant"]["variant_name"] == "Custom"
    details = record["deployment"]["privacy_loss"]["privacy_parameters_details"]
    for part in ("Input metric", "input distance", "Output measure", "output", "gamma = 0.01"):
        assert part in details


def test_the_record_says_whom_a_private_number_of_units_protects(plan_document):
    """No number of units is stated where none is public, and what bounding does is."""
    plan_document["releases"] = plan_document["releases"][:1]
    plan_document["budget"]["requested"]["beta"] = "0"
    home = {"column": "home", "max_rows": 4, "name": "household"}
    changes = {"privacy_unit": home, "neighbours": "add-remove", "synthesis": []}
    plan = Plan.model_validate(plan_document | changes)
    loss = _privacy_loss(_guarantee(plan), plan)
    assert loss["privacy_unit"] == "One household of the table"
    assert "number_of_privacy_units" not in loss
    assert "(add-remove)" in loss["privacy_unit_details"]
    assert "at most 4 are used" in loss["privacy_unit_details"]
    assert "At most 4 records of each household" in _preprocessing(plan)
    row = Plan.model_validate(plan_document | {"synthesis": []})
    assert _privacy_loss(_guarantee(row), row)["number_of_privacy_units"] == 400
    assert _preprocessing(row).startswith("None on the records")


@pytest.mark.parametrize(
    ("invalid", "words"),
    [("clamp", "nearest bound"), ("own-cell", "a cell in every"), ("drop", "left out")],
)
def test_a_plan_that_refuses_no_record_promises_all_tables(invalid, words, plan_document):
    plan_document["releases"] = plan_document["releases"][:1]
    plan_document["budget"]["requested"]["beta"] = "0"
    changes = {"invalid": invalid, "neighbours": "add-remove", "synthesis": []}
    plan = Plan.model_validate(plan_document | changes)
    guarantee = _guarantee(plan)
    told = "all tables with the columns of the plan and at most a trillion records: "
    assert guarantee.domain.startswith(told)
    assert words in guarantee.domain
    assert guarantee.domain in guarantee.statement
    assert words in _preprocessing(plan)


def test_what_is_found_in_the_records_is_never_called_public():
    """Of each open column, drawn setting and group of cells."""
    plan = load_plan(
        from_yaml(
            """
            columns:
              job: {type: categorical, categories: open, at_most: 20}
              pay: {type: continuous, bounds: [0, open]}
              age: {type: integer, bounds: [0, 99]}
            releases:
              - {name: jobs, kind: histogram, columns: [job]}
              - {name: ages, kind: density, columns: [age], mechanism: binned-laplace,
                 bandwidth: {private: quantiles, smallest: 0.05}}
              - {name: people, kind: microdata-margins, columns: [job, pay], bins: {pay: 9},
                 compress: {keep: 4}}
            """,
            beta="1e-6",
        )
    )
    found = "the categories of job and the open bounds of pay"
    own = "the bandwidth of ages, the groups of cells of people"
    words = _preprocessing(plan)
    assert f"budget: {found.replace(' and', ',')}, {own}. All other columns" in words
    for words in (_unprotected(plan), plan.protection.limits[-1], columns_table(plan).caption):
        assert f", except {found}, which are found with noise, within the budget" in words
    stated = plan.changed(columns={"age": plan.columns["age"]}, releases=[])
    assert columns_table(stated).caption.endswith("not read from the records")
    assert stated.protection.limits[-1].endswith("bins of the plan.")


def _check_products(manifest: Manifest) -> None:
    """The registry's words for what is published, and for how often."""
    for names, product in (
        (["people"], "Summary statistics"),
        (["rich", "pay"], "Machine learning model"),
        (["people", "rich"], "Summary statistics"),
    ):
        records = [record for record in manifest.releases if record.name in names]
        assert len(records) == len(names)
        part = manifest.model_copy(update={"releases": records, "synthesis": [], "scheduled": True})
        record = yaml.safe_load(documents(part)["registry.yaml"])
        assert faults("registry.yaml", record) == []
        assert record["deployment"]["basic"]["data_product_type"] == product
        often = record["deployment"]["deployment_model"]
        assert (often["release_type"], often["data_source_type"]) == ("Many releases", "Dynamic")


def _check_dcat(manifest: Manifest, dataset: dict) -> None:
    assert faults("dcat.yaml", dataset) == []
    assert dataset["contactPoint"]["fn"] == "Help desk"
    assert dataset["contactPoint"]["hasEmail"] == "mailto:help@statistics.example.org"
    assert len(dataset["distribution"]) == len(manifest.tables)
    unstated = json.loads(documents(without(manifest, "publisher", "contact"))["dcat.json"])
    assert faults("dcat.yaml", unstated) == [
        "'publisher' is a required property",
        "'contactPoint' is a required property",
    ]


def _check_codebook(text: str) -> None:
    rows = list(csv.DictReader(io.StringIO(text)))
    regions = [row for row in rows if row["column"] == "region"]
    assert [row["category"] for row in regions] == ["north", "south", "east", "west"]
    assert regions[0]["label"] == "The north"
    assert regions[0]["nullable"] == "true"
    (age,) = [row for row in rows if row["column"] == "age"]
    assert (age["unit"], age["smallest"], age["largest"]) == ("years", "18", "89")


def _check_tampering(bundle: Path, manifest: Manifest) -> None:
    """A document with a digest of its own, but not what the manifest says."""
    old = (bundle / "dcat.json").read_bytes()
    new = old.replace(b"Statistics Office", b"Somebody else")
    (bundle / "dcat.json").write_bytes(new)
    sums = (bundle / "SHA256SUMS").read_text()
    before, after = (hashlib.sha256(content).hexdigest() for content in (old, new))
    (bundle / "SHA256SUMS").write_text(sums.replace(before, after))
    with pytest.raises(BundleError, match=r"dcat\.json does not match the manifest"):
        verify_files(bundle, manifest)
