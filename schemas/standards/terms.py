"""What several standards ask of a release: its licence as an address, and how it is cited."""

import re

from schemas.bundle import Manifest
from schemas.publication import Publication


def licence_address(text: str) -> str | None:
    """Where a licence is: the address in its words, or that of its SPDX identifier.

    >>> licence_address("CC-BY-4.0"), licence_address("CC BY, https://example.org/by")
    ('https://spdx.org/licenses/CC-BY-4.0.html', 'https://example.org/by')
    >>> licence_address("as the office allows")
    """
    if re.fullmatch(r"[A-Za-z0-9][\w.+-]*-[\w.+-]*\d[\w.+-]*", text):
        return f"https://spdx.org/licenses/{text}.html"
    found = re.search(r"https?://[^\s<>()]*[^\s<>().,;]", text)
    return found[0] if found else None


def cited(manifest: Manifest, publication: Publication) -> str:
    """How the release is cited."""
    publisher = publication.publisher.strip()
    promise = manifest.guarantee.statement.partition(" with ")[2].partition(" (")[0]
    return (
        f"{publisher + ' ' if publisher else ''}({manifest.drawn_at[:4]}). {manifest.title}"
        f" [differentially private data set {manifest.dataset}, release {manifest.release_id},"
        f" {promise}]."
    )
