"""Of which pages the pictures of the documentation are: a digest of the templates of the report."""

from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURED = ROOT / "docs" / "pictured.txt"


def pages_today() -> str:
    """The digest of the templates as they are now."""
    templates = sorted((ROOT / "tasks" / "report" / "templates").iterdir())
    return sha256(b"\0".join(path.read_bytes() for path in templates)).hexdigest()
