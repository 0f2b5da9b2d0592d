"""The release flow without Prefect: its steps are called as the plain functions that they are.

For tests of what lies under Prefect, where starting it would take most of the time.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import Task

import flows.release
from dpcore.audit import AuditResult
from schemas.plan import Plan
from tasks.audit.audit import audit_shortly

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


class Direct:
    """A step that is called where it stands, and submitted as well."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.submit = self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def without_prefect(put: Callable[[object, str, Any], None] = setattr) -> None:
    """Make ``flows.release.release.fn`` run its steps directly; ``put`` is how to patch.

    Left out are the artifacts, which are Prefect's, and all audits but the first: they read no
    survey and charge nothing.
    """
    for name, value in list(vars(flows.release).items()):
        if isinstance(value, Task):
            put(flows.release, name, Direct(value.fn))
    put(flows.release, "wait_for_all", list)
    put(flows.release, "announce", lambda *_: None)
    audited: list[AuditResult] = []

    def audit_once(plan: Plan) -> list[AuditResult]:
        if not audited:
            audited.extend(audit_shortly.fn(plan))
        return audited

    put(flows.release, "audit_shortly", audit_once)


def release(plan: Path, release_id: str, out: Path, **overrides: Any) -> Path:
    """Run the flow; after ``without_prefect``."""
    return Path(flows.release.release.fn(str(plan), release_id, str(out), overrides))
