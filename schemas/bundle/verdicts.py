"""Whether synthetic tables are as good as their plan asks, for whoever reads a bundle."""

from schemas.bundle.manifest import Manifest


def judged(manifest: Manifest) -> dict[str, str]:
    """Of synthetic tables whose quality was measured: whether they are good enough, in a sentence."""
    said: dict[str, str] = {}
    for release in manifest.releases:
        if release.kind == "quality":
            facts, criteria = release.facts, f"all criteria of {release.name}"
            verdict = f"The records do not meet {criteria}, which says what was measured."
            if facts["accepted"]:
                verdict = f"The records meet {criteria}."
            if facts["withheld"]:
                verdict = f"The records are withheld: they do not meet {criteria}."
            said[facts["records"]] = f"{said.get(facts['records'], '')} {verdict}".strip()
    return said
