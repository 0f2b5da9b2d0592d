"""Describes the changes from one release to the next, from the plans that both publish.

Except for runs of a series, all releases of a dataset read the same survey.  Their numbers differ by
noise alone, so only the questions and methods can have changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.bundle.manifest import Manifest
from schemas.plan.series import of_any_run

PARTS = {
    "columns": "columns",
    "curves": "curves",
    "releases": "measured tables and models",
    "synthesis": "synthetic tables",
    "analyses": "models fitted to tables",
}
"""The sections of a plan with named entries, and readers' words for them."""

KEYS = {
    "rows": "the number of records",
    "counts": "what is counted",
    "privacy_unit": "the privacy unit",
    "neighbours": "the neighbouring relation",
    "weights": "the weights",
    "strata": "the strata",
    "cluster": "the clusters",
    "linked": "the linked table",
    "series": "the series",
    "budget": "the budget",
    "invalid": "the rule for invalid values",
}
"""Other sections of a plan that change the meaning of its numbers."""


def changes(before: Manifest | None, now: Manifest) -> list[str]:
    """Sentences without a full stop, such as "new measured tables and models: ages"; public.

    ``before``: the manifest of the release before this one of the same dataset; None for the first.
    """
    if before is None:
        return ["the first release of this dataset here"]
    old, new = before.plan, now.plan
    if "series" in new and of_any_run(old) == of_any_run(new):
        return [f"run {new['series']['run']} of a series, after run {old['series']['run']}"]
    found = [
        sentence
        for part, words in PARTS.items()
        for sentence in _of_part(_by_name(old.get(part)), _by_name(new.get(part)), words)
    ]
    if other := [words for key, words in KEYS.items() if old.get(key) != new.get(key)]:
        found.append(f"changed: {', '.join(other)}")
    return found or ["the same plan again, with new noise"]


def _by_name(part: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> Mapping[str, Any]:
    return part if isinstance(part, Mapping) else {each["name"]: each for each in part or ()}


def _of_part(old: Mapping[str, Any], new: Mapping[str, Any], words: str) -> list[str]:
    differ = {
        "new": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": [name for name in new if name in old and old[name] != new[name]],
    }
    return [f"{how} {words}: {', '.join(names)}" for how, names in differ.items() if names]
