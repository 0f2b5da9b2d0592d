"""``datapackage.json``: the bundle as a Frictionless Data Package (datapackage.org).

Every Parquet file is a resource with a full table schema: types, descriptions, categories and their
labels, bounds.  Facts for which the standard has no key have keys of our own: ``unit``,
``survey_column`` and ``uncertainty``.  Digests and sizes are only in the manifest: the standard has keys
for them, but its library miscounts the bytes of Parquet files and reports the files as broken.
"""

import re
from typing import Any

from dpcore.releases.table import TABLE
from schemas.bundle.manifest import Manifest
from schemas.bundle.table_file import ReplicatesRecord, TableFile
from schemas.documents.terms import as_json, description, identifier, licence_address
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn, Column

TYPES = {
    "int64": "integer",
    "double": "number",
    "float": "number",
    "string": "string",
    "bool": "boolean",
}
NEVER_NEGATIVE = ("count", "cells")

MOST_LISTED = 10_000
"""If a column has more categories, only the codebook lists them, not each of its tables."""


def datapackage(manifest: Manifest, plan: Plan) -> str:
    """The package descriptor as JSON."""
    publication = plan.publication
    contributor = {"title": publication.publisher, "role": "publisher"}
    warnings = {path: words for each in manifest.synthesis for path, words in each.warnings.items()}
    package = {
        "name": f"{manifest.dataset}-{manifest.release_id}",
        "title": manifest.title,
        "description": description(manifest, publication),
        "version": manifest.release_id,
        "created": manifest.drawn_at,
        "contributors": [contributor] if publication.publisher else None,
        "licenses": [_licence(publication.licence)] if publication.licence else None,
        "resources": [
            *(_resource(t, plan, warnings.get(t.path, "")) for t in manifest.tables),
            *(_replicates(t, t.replicates) for t in manifest.tables if t.replicates),
        ],
    }
    return as_json(package)


def resource_name(path: str) -> str:
    """The name of a table's resource: its path, without characters that names may not contain."""
    return identifier(path.removesuffix(".parquet").replace("/", "-")).lower()


def _licence(text: str) -> dict[str, str]:
    """A licence with its identifier, such as CC0-1.0, or its address; no other text."""
    address = licence_address(text)
    if re.fullmatch(r"[\w.+-]+", text):
        return {"name": text} | ({"path": address} if address else {})
    return {"path": address or "report.html", "title": text}


def _resource(table: TableFile, plan: Plan, warning: str) -> dict[str, Any]:
    """The descriptor of one table; ``warning``: text for tables of synthetic records, else empty."""
    records = bool(warning)
    return {
        **_file(table.path),
        **({"description": warning} if records else {}),
        "schema": {
            "fields": [_field(name, table, plan, records) for name in table.columns],
            "missingValues": [],  # by default the standard takes empty text for a null
        },
        "uncertainty": [u.model_dump(mode="json") for u in table.uncertainty],
    }


def _replicates(table: TableFile, again: ReplicatesRecord) -> dict[str, Any]:
    said = f"{again.column} with its noise drawn again"
    fields = [{"name": n, "type": TYPES[again.type], "description": said} for n in again.names]
    if len(table.holds) > 1:
        fields.insert(0, {"name": TABLE, "type": "string"})
    return _file(again.path) | {
        "description": f"Replicates of {table.path}, row by row.",
        "schema": {"fields": fields, "missingValues": []},
    }


def _file(path: str) -> dict[str, str]:
    return {
        "name": resource_name(path),
        "path": path,
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
    }


def _field(name: str, table: TableFile, plan: Plan, records: bool) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": name,
        "type": TYPES[table.columns[name]],
        "description": table.descriptions[name],
    }
    about = table.about.get(name)
    if about is None:
        if name in NEVER_NEGATIVE:
            field["constraints"] = {"minimum": 0}
        return field
    column = plan.described_columns[about]
    field["survey_column"] = about
    if column.label and name == about:
        field["title"] = column.label
    if _listed(name, table, column) and name == about:
        # The library reads a null among real numbers as NaN, which breaks all bounds and lists.
        if table.columns[name] != "double" or not (column.nullable or table.holds):
            field["constraints"] = {"enum": list(column.listed or ())}
        field["categories"] = _categories(column)
    if not isinstance(column, CategoricalColumn):
        if column.unit:
            field["unit"] = column.unit
        if records and not column.nullable and column.listed is None:
            field["constraints"] = dict(zip(("minimum", "maximum"), column.bounds, strict=True))
    if records and not column.nullable:
        field.setdefault("constraints", {})["required"] = True
    return field


def _listed(name: str, table: TableFile, column: Column) -> bool:
    """Whether a published column contains the values that the plan lists for the survey's column."""
    if not isinstance(column, CategoricalColumn):
        return column.listed is not None
    return len(column.categories) <= MOST_LISTED and table.columns[name] == _arrow_type(column)


def _arrow_type(column: CategoricalColumn) -> str:
    return {str: "string", bool: "bool", int: "int64", float: "double"}[type(column.categories[0])]


def _categories(column: Column) -> list[dict[str, Any]]:
    return [
        {"value": value, "label": column.labels.get(str(value), str(value))}
        for value in column.listed or ()
    ]
