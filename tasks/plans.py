"""The folder of release plans that an agency runs, and where its bundles go.

    DPRELEASE_PLANS    the folder of plans, one YAML file each
    DPRELEASE_OUT      the folder under which bundles appear; by default ``published``

A plan is known by its file's name, in the letters that a release id may have.
"""

import os
import re
from pathlib import Path

from dpcore.errors import InputError


def plan_name(path: Path) -> str:
    """What a plan is called: its file's name, `acs_ma.yaml` is `acs-ma`."""
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")
    return name[:60] or "plan"


def plans_in(folder: Path) -> dict[str, Path]:
    """Every plan of the folder by name; raises ``InputError`` where two have the same."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder of plans")
    found: dict[str, Path] = {}
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        if found.setdefault(plan_name(path), path) != path:
            raise InputError(f"{path} and {found[plan_name(path)].name} have the same name")
    return found


def plans_folder() -> Path:
    """The agency's folder of plans."""
    return Path(os.environ.get("DPRELEASE_PLANS", "plans")).absolute()


def find_plan(plan: str) -> Path:
    """The path of a plan that is named, or the path itself where one is given."""
    if re.fullmatch("[a-z0-9-]+", plan) and not Path(plan).exists():
        known = plans_in(plans_folder())
        if plan not in known:
            raise InputError(f"there is no plan {plan!r}; there is {', '.join(known) or 'none'}")
        return known[plan]
    return Path(plan)


def published_folder() -> Path:
    """Where bundles appear."""
    return Path(os.environ.get("DPRELEASE_OUT", "published"))
