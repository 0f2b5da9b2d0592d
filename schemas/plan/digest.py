"""The digest of a plan: plans with the same digest publish the same statistics with the same noise."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from schemas.survey.found import OPEN


def digest_of(public: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest's plan in canonical JSON, without the search results for open columns."""
    # A search must not change the digest, which identifies the plan before and after it.
    columns = {
        name: column
        | ({"categories": OPEN} if column.get("at_most") else {})
        | ({"bounds": OPEN} if column.get("searched") else {})
        for name, column in public["columns"].items()
    }
    text = json.dumps({**public, "columns": columns}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
