"""``croissant.json``: the bundle as a dataset of Croissant 1.0 (MLCommons), for machine learning.

Every Parquet file is a file object with its digest, and a record set with a field for each column but
the replicates.
"""

import json
from typing import Any

from schemas.bundle.manifest import Manifest, TableFile
from schemas.documents.datapackage import resource_name
from schemas.documents.terms import cited, identifier, keywords, licence_address
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
    publication = plan.publication
    dataset: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": manifest.title,
        "description": "\n\n".join(
            filter(None, (publication.description, manifest.guarantee.statement))
        ),
        "conformsTo": f"{CROISSANT}1.0",
        "datePublished": manifest.drawn_at[:10],
        "identifier": f"{manifest.dataset}/{manifest.release_id}",
        "version": "1.0.0",  # a bundle never changes
        "citeAs": cited(manifest, publication),
        "keywords": keywords(manifest, plan),
        "distribution": [_file(path, table) for path, table in _files(manifest).items()],
        "recordSet": [_records(table) for table in _files(manifest).values()],
    }
    if publication.publisher:
        dataset["creator"] = {"@type": "sc:Organization", "name": publication.publisher}
    if publication.licence:
        dataset["license"] = licence_address(publication.licence) or publication.licence
    return json.dumps(dataset, indent=2, ensure_ascii=False) + "\n"


def _files(manifest: Manifest) -> dict[str, TableFile]:
    return {table.path: table for table in manifest.tables}


def _file(path: str, table: TableFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
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
