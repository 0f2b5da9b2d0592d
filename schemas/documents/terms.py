"""Facts that several standards require: names for a release's tables, its licence and its citation."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from schemas.bundle.manifest import Manifest
from schemas.plan import Plan
from schemas.plan.publication import Publication


def identifier(text: str) -> str:
    """A name in ASCII letters, digits and . _ - =, which all standards allow. If characters were
    replaced, it ends with a part of the text's digest, so that different texts get different names.

    >>> identifier("age_from"), identifier("body mass"), identifier("größe")
    ('age_from', 'body-mass-096b2044', 'gro-e-d353a267')
    """
    letters = "".join(
        c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
    )
    spelled = re.sub(r"[^A-Za-z0-9._=-]", "-", letters)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return spelled if spelled == text else f"{spelled}-{digest}"


def licence_address(text: str) -> str | None:
    """The address of a licence, from its text or its SPDX identifier; None without either.

    >>> licence_address("CC-BY-4.0"), licence_address("CC BY, https://example.org/by")
    ('https://spdx.org/licenses/CC-BY-4.0.html', 'https://example.org/by')
    >>> licence_address("as the office allows")
    """
    if re.fullmatch(r"[A-Za-z0-9][\w.+-]*-[\w.+-]*\d[\w.+-]*", text):
        return f"https://spdx.org/licenses/{text}.html"
    found = re.search(r"https?://[^\s<>()]*[^\s<>().,;]", text)
    return found[0] if found else None


def licence(publication: Publication) -> str | None:
    """The licence's address if it has one, otherwise its text; None if the plan states no licence."""
    return licence_address(publication.licence) or publication.licence or None


def description(manifest: Manifest, publication: Publication) -> str:
    """A description of the release with its privacy guarantee."""
    return "\n\n".join(filter(None, (publication.description, manifest.guarantee.statement)))


def as_json(document: Mapping[str, Any]) -> str:
    """The document as JSON, without keys whose value is None because the plan does not state it."""
    known = {key: value for key, value in document.items() if value is not None}
    return json.dumps(known, indent=2, ensure_ascii=False) + "\n"


def keywords(manifest: Manifest, plan: Plan) -> list[str]:
    """The keywords: differential privacy, and the survey's columns in published tables."""
    found = {t.about.get(name, name) for t in manifest.tables for name in t.columns}
    return ["differential privacy", *(name for name in plan.described_columns if name in found)]


def cited(manifest: Manifest, publication: Publication) -> str:
    """The citation of the release."""
    publisher, year = publication.publisher.strip(), manifest.drawn_at[:4]
    promise = manifest.guarantee.statement.partition(" with ")[2].partition(" (")[0]
    return (
        f"{f'{publisher} ({year}). {manifest.title}' if publisher else f'{manifest.title} ({year})'}"
        f" [differentially private data set {manifest.dataset}, release {manifest.release_id},"
        f" {promise}]."
    )
