"""The shortest document of a plan: what every plan must state, and what a test adds."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml


def document(
    columns: Mapping[str, Any],
    releases: Sequence[Mapping[str, Any]],
    /,
    *,
    alpha: str = "1",
    beta: str = "0",
    gamma: str = "0",
    **more: Any,
) -> dict[str, Any]:
    """It grants what it requests; ``more``: other keys of a plan, or other values of these."""
    amount = {"alpha": alpha, "beta": beta, "gamma": gamma}
    return {
        "dprelease": 1,
        "dataset": "people",
        "source": "nowhere.parquet",
        "rows": 300,
        "privacy_unit": "row",
        "neighbours": "replace-one",
        "budget": {"granted": amount, "requested": amount},
        "columns": columns,
        "releases": releases,
        "publication": {"title": "People"},
    } | more


def from_yaml(text: str, **more: Any) -> dict[str, Any]:
    """The same with columns, releases and other keys in YAML."""
    stated = yaml.safe_load(text) | more
    return document(stated.pop("columns"), stated.pop("releases"), **stated)
