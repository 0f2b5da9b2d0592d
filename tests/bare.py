"""A small plan, and its release without a Prefect flow, which would take most of a test's time."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

import flows.course
import flows.release
from tasks import admission
from tests.tasks.made_up import made_up_audits

PLAN = """
dprelease: 1
dataset: survey
source: survey.parquet
rows: 40
privacy_unit: row
neighbours: replace-one
budget:
  granted: {alpha: "2", beta: "0", gamma: "0"}
  requested: {alpha: "1", beta: "0", gamma: "0"}
columns:
  sex: {type: categorical, categories: [F, M]}
  age: {type: integer, bounds: [18, 89]}
releases:
  - {name: people, kind: histogram, columns: [sex, age], bins: {age: 3}}
  - {name: sexes, kind: margins, columns: [sex, age], ways: 1, bins: {age: 3}}
synthesis:
  - {name: everybody, from: people, rows: 40}
publication: {title: A small survey}
"""


def small_plan(folder: Path) -> Path:
    """A plan of two releases and its survey, on disk."""
    survey = pd.DataFrame({"sex": ["F", "M"] * 20, "age": range(20, 60)})
    survey.to_parquet(folder / "survey.parquet")
    path = folder / "plan.yaml"
    path.write_text(PLAN)
    return path


def open_plan() -> dict[str, Any]:
    """A plan of homes of up to two members, whose jobs are to be found."""
    return {
        "dprelease": 1,
        "dataset": "jobs",
        "source": "survey.parquet",
        "rows": 400,
        "privacy_unit": {"column": "home", "max_rows": 2},
        "neighbours": "add-remove",
        "invalid": "own-cell",
        "budget": {
            "granted": {"alpha": "20", "beta": "1e-4"},
            "requested": {"alpha": "10", "beta": "1e-5"},
        },
        "columns": {
            "job": {"type": "categorical", "categories": "open", "at_most": 3},
            "sex": {"type": "categorical", "categories": ["F", "M"]},
        },
        "releases": [
            {"name": "people", "kind": "microdata-margins", "columns": ["job", "sex"]},
            {"name": "jobs", "kind": "histogram", "columns": ["job"]},
        ],
        "synthesis": [{"name": "everybody", "from": "people", "rows": 400}],
        "analyses": [{"name": "m", "title": "M", "formula": "sex ~ job", "family": "binomial"}],
        "publication": {"title": "Jobs"},
    }


def leave_out_audits(put: Callable[[object, str, Any], None] = setattr) -> None:
    """Make up the results of the short audit of a release: it reads no survey and charges nothing.

    ``put`` is how to patch.
    """
    put(flows.course, "audit_shortly", made_up_audits)


def module_of(step: str) -> ModuleType:
    """The module that calls this step of a release."""
    return flows.course if hasattr(flows.course, step) else admission


def release(plan: Path, release_id: str, out: Path, **overrides: Any) -> Path:
    """Run the flow's function outside a flow, so that its steps are plain functions."""
    return Path(flows.release.release.fn(str(plan), release_id, str(out), overrides))
