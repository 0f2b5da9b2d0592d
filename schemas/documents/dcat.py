"""``dcat.json``: the bundle as a dataset of DCAT-US 3 (resources.data.gov, General Services
Administration), with one distribution for every table.

The later address of a bundle is unknown when it is made, so distributions have no address; their title
is their path in the bundle.  The standard asks for a publisher and a contact with an e-mail address;
they come from the plan, or are missing.
"""

import re
from typing import Any

from schemas.bundle.manifest import Manifest
from schemas.bundle.table_file import TableFile
from schemas.documents.terms import as_json, keywords, licence
from schemas.plan import Plan
from schemas.plan.publication import Publication


def dcat(manifest: Manifest, plan: Plan) -> str:
    """The dataset as JSON."""
    publication = plan.publication
    publisher = {"@type": "Organization", "name": publication.publisher}
    dataset = {
        "@type": "Dataset",
        "identifier": {
            "@type": "Identifier",
            "notation": f"{manifest.dataset}/{manifest.release_id}",
        },
        "title": manifest.title,
        "description": publication.description or manifest.title,
        "issued": manifest.drawn_at[:10],
        "version": manifest.release_id,
        "keyword": keywords(manifest, plan),
        "rights": [manifest.guarantee.statement],
        "provenance": [
            "Computed from noisy statistics alone; manifest.json has the plan, the noise and its cost."
        ],
        "describedBy": _file("datapackage.json", "application/json"),
        "conformsTo": [{"@type": "Standard", "title": "DCAT-US 3.0"}],
        "distribution": [_distribution(table, publication) for table in manifest.tables],
        "publisher": publisher if publication.publisher else None,
        "contactPoint": _contact(publication),
        "purpose": publication.intended_use or None,
    }
    return as_json(dataset)


def _contact(publication: Publication) -> dict[str, str] | None:
    """The contact point, if the plan's contact contains an e-mail address; else None."""
    found = re.search(r"[\w.+~-]+@[\w.-]+\.[\w-]+", publication.contact)
    if found is None:
        return None
    name = publication.contact.replace(found[0], "").strip(" <>(),;") or publication.publisher
    return {"@type": "Kind", "fn": name or found[0], "hasEmail": f"mailto:{found[0]}"}


def _file(path: str, media_type: str) -> dict[str, Any]:
    return {"@type": "Distribution", "title": path, "mediaType": media_type}


def _distribution(table: TableFile, publication: Publication) -> dict[str, Any]:
    terms = {"license": licence(publication)} if publication.licence else {}
    return _file(table.path, "application/vnd.apache.parquet") | {
        "format": "Parquet",
        "byteSize": str(table.bytes),
        "checksum": {
            "@type": "Checksum",
            "algorithm": "SHA-256",
            "checksumValue": table.sha256,
        },
        **terms,
    }
