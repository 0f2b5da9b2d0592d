"""Says for readers of a bundle whether synthetic tables are as good as their plan requires."""

from schemas.bundle.manifest import Manifest


def judged(manifest: Manifest) -> dict[str, str]:
    """For each synthetic table whose quality was measured, a sentence on whether it is good enough."""
    said: dict[str, str] = {}
    for release in manifest.releases:
        if release.kind == "quality":
            facts, criteria = release.facts, f"all criteria of {release.name}"
            verdict = f"The records do not meet {criteria}; its table shows the measurements."
            if facts["accepted"]:
                verdict = f"The records meet {criteria}."
            if facts["withheld"]:
                verdict = f"The records are withheld: they do not meet {criteria}."
            said[facts["records"]] = f"{said.get(facts['records'], '')} {verdict}".strip()
    return said
