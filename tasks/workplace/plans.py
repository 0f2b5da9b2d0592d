"""The agency's folder of release plans, and the folder of its bundles.

    DPRELEASE_PLANS    the folder of plans, one YAML file each; by default ``plans``
    DPRELEASE_OUT      the folder under which bundles appear; by default ``published``

A plan's name is its file's name, reduced to the letters that a release id may have.
"""

import os
import re
from pathlib import Path

from dpcore.errors import InputError
from tasks.workplace.places import lasting


def plan_name(path: Path) -> str:
    """The name of a plan, made from the name of its file: ``acs_ma.yaml`` becomes ``acs-ma``."""
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")
    return name[:60] or "plan"


def plans_in(folder: Path) -> dict[str, Path]:
    """Every plan of the folder by name; raises ``InputError`` if two have the same name."""
    if not folder.is_dir():
        raise InputError(
            f"{folder}: there is no such folder of plans; name one with --plans or DPRELEASE_PLANS"
        )
    found: dict[str, Path] = {}
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        if found.setdefault(plan_name(path), path) != path:
            raise InputError(
                f"{path} and {found[plan_name(path)].name} give plans of the same name"
                f" {plan_name(path)!r}; rename one"
            )
    return found


def plans_folder() -> Path:
    """The agency's folder of plans."""
    return lasting(Path(os.environ.get("DPRELEASE_PLANS") or "plans"), "DPRELEASE_PLANS").absolute()


def usual_plans() -> dict[str, Path]:
    """Every plan of the agency's folder by name; none if it is missing and no variable names it."""
    folder = plans_folder()
    return plans_in(folder) if os.environ.get("DPRELEASE_PLANS") or folder.is_dir() else {}


def known_plan(name: str) -> Path:
    """The path of the plan of this name in the agency's folder; raises ``InputError`` for any other."""
    known = plans_in(plans_folder())
    if name not in known:
        raise InputError(
            f"plan: there is no plan {name!r} in {plans_folder()}; its plans:"
            f" {', '.join(known) or 'none'}"
        )
    return known[name]


def find_plan(plan: str) -> Path:
    """The path of the plan with this name; a path is returned as it is."""
    if re.fullmatch("[a-z0-9-]+", plan) and not Path(plan).exists():
        return known_plan(plan)
    return Path(plan)


def published_folder() -> Path:
    """The folder under which bundles appear."""
    return lasting(Path(os.environ.get("DPRELEASE_OUT") or "published"), "DPRELEASE_OUT")
