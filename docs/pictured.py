"""Of which pages the pictures of the documentation are: a digest of the templates of the report."""

from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURED = ROOT / "docs" / "pictured.txt"
UNSEEN = "catalogue.html"
"""The template that no picture shows."""


def pages_today() -> str:
    """The digest of the templates as they are now."""
    folder = ROOT / "tasks" / "report" / "templates"
    templates = sorted(path for path in folder.iterdir() if path.name != UNSEEN)
    return sha256(b"\0".join(path.read_bytes() for path in templates)).hexdigest()
