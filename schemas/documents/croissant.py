"""``croissant.json``: the bundle as a dataset of Croissant 1.0 (MLCommons), for machine learning.

Every Parquet file is a file object with its digest, and a record set with a field for each column except
columns of replicates.
"""

from typing import Any

from schemas.bundle.manifest import Manifest
from schemas.bundle.table_file import TableFile
from schemas.documents.datapackage import resource_name
from schemas.documents.terms import as_json, cited, description, identifier, keywords, licence
from schemas.plan import Plan

SCHEMA_ORG, CROISSANT = "https://schema.org/", "http://mlcommons.org/croissant/"

WORDS = """
    citeAs column equivalentProperty extract field fileProperty fileObject fileSet format includes key
    isLiveDataset jsonPath md5 parentField path recordSet references regex repeated replace
    samplingRate separator source subField transform
"""

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": SCHEMA_ORG,
    "sc": SCHEMA_ORG,
    "cr": CROISSANT,
    "rai": f"{CROISSANT}RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{word: f"cr:{word}" for word in WORDS.split()},
}
"""The context that the standard prescribes."""

TYPES = {
    "int64": "sc:Integer",
    "double": "sc:Float",
    "float": "sc:Float",
    "string": "sc:Text",
    "bool": "sc:Boolean",
}


def croissant(manifest: Manifest, plan: Plan) -> str:
    """The dataset as JSON-LD."""
    publication, tables = plan.publication, {table.path: table for table in manifest.tables}
    creator = {"@type": "sc:Organization", "name": publication.publisher}
    dataset = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": manifest.title,
        "description": description(manifest, publication),
        "conformsTo": f"{CROISSANT}1.0",
        "datePublished": manifest.drawn_at[:10],
        "identifier": f"{manifest.dataset}/{manifest.release_id}",
        "version": "1.0.0",  # a bundle never changes
        "citeAs": cited(manifest, publication),
        "keywords": keywords(manifest, plan),
        "distribution": [_file(table) for table in tables.values()],
        "recordSet": [_records(table) for table in tables.values()],
        "creator": creator if publication.publisher else None,
        "license": licence(publication),
    }
    return as_json(dataset)


def _file(table: TableFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        **dict.fromkeys(("@id", "name", "contentUrl"), table.path),
        "contentSize": f"{table.bytes} B",
        "encodingFormat": "application/x-parquet",
        "sha256": table.sha256,
    }


def _records(table: TableFile) -> dict[str, Any]:
    name = resource_name(table.path)
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{identifier(column)}",
                "name": column,
                "description": table.descriptions[column],
                "dataType": TYPES[kind],
                "source": {"fileObject": {"@id": table.path}, "extract": {"column": column}},
            }
            for column, kind in table.columns.items()
        ],
    }
