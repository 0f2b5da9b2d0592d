"""Sentences on whether synthetic tables meet the plan's quality criteria."""

from schemas.bundle.manifest import Manifest


def judged(manifest: Manifest) -> dict[str, str]:
    """For each synthetic table with measured quality, whether it meets the criteria, in words."""
    said: dict[str, str] = {}
    for release in manifest.releases:
        facts, criteria = release.facts, f"all criteria of {release.name}"
        if "withheld" in facts:
            verdict = (
                f"The records do not meet {criteria}; the table of {release.name} shows the"
                " measurements."
            )
            if facts["accepted"]:
                verdict = f"The records meet {criteria}."
            if facts["withheld"]:
                verdict = f"The records are withheld: they do not meet {criteria}."
            said[facts["records"]] = f"{said.get(facts['records'], '')} {verdict}".strip()
    return said
