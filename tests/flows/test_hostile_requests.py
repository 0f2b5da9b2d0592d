"""Whoever may open Prefect's page asks a real server for what no plan opens, and gets none of it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from dpcore.accounting.budget import total
from tests.flows.served import WHOLE, last_due

pytestmark = pytest.mark.slow

RELEASE, AD_HOC, AUDIT = (
    ("release", "income"),
    ("ad hoc release", "ad-hoc-release"),
    ("audit", "audit-a-plan"),
)
RICHER = {"dataset": "theirs", "budget.granted.alpha": "1000", "budget.requested.alpha": "900"}
OPENED = 8
"""A tenth of the grant."""

Request = tuple[tuple[str, str], dict[str, Any]]


def at(due: datetime) -> dict[str, Any]:
    """A run that is due then."""
    return {"state": {"type": "SCHEDULED", "state_details": {"scheduled_time": due.isoformat()}}}


def hostile_requests(theirs: Path) -> Iterator[Request]:
    """Of the release that is on a schedule, of the form, and of the audit."""
    plan = str(theirs / "plan.yaml")
    for more in (
        {"overrides": RICHER, "out": str(theirs), "release_id": "mine"},
        {"plan": plan},
        {"plan": "../plans/income.yaml"},
    ):
        yield RELEASE, {"parameters": {"plan": "income"} | more} | at(last_due())
    yield RELEASE, at(last_due() + timedelta(days=70))
    for variables in (
        {"env": {"DPRELEASE_LEDGER": f"sqlite:///{theirs}/ledger.sqlite"}},
        {"command": f"touch {theirs}/touched"},
    ):
        yield RELEASE, {"job_variables": variables} | at(last_due())
    for more in (
        {"releases": ["income: wealth"]},
        {"overrides": RICHER, "out": str(theirs)},
        {"tables": ["sex x income"]},
    ):
        yield AD_HOC, {"parameters": WHOLE | {"plan": "income"} | more}
    yield AUDIT, {"parameters": {"plan": plan}}
    for _ in range(3):  # each would be right, and together they are more than is opened
        yield AD_HOC, {"parameters": WHOLE | {"plan": "income", "alpha": ""}}


def files(folder: Path) -> set[Path]:
    """Every file that is not the server's own, or the ledger."""
    mine = (folder / "home", folder / "ledger.sqlite")
    return {path for path in folder.rglob("*") if not any(path.is_relative_to(own) for own in mine)}


def test_hostile_requests_are_charged_no_more_than_is_opened(served, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    document = yaml.safe_load((served.folder / "plans" / "income.yaml").read_text())
    document |= {"dataset": "theirs", "source": str(served.folder / "plans" / "survey.parquet")}
    (theirs / "plan.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    before, own = files(served.folder), set(theirs.iterdir())
    known, datasets = set(served.ledger.releases("income")), served.ledger.datasets()
    runs = []
    for (flow, name), body in hostile_requests(theirs):
        deployment = served.deployment(flow, name)["id"]
        try:
            path = f"/deployments/{deployment}/create_flow_run"
            run = served.api("POST", path, **({"enforce_parameter_schema": False} | body))["id"]
        except httpx.HTTPStatusError as refused:
            if refused.response.status_code not in (409, 422):
                raise
            continue
        served.start_now(run)
        runs.append(run)
    assert len(runs) > 8
    ended = [served.settled(run) for run in runs]
    for run in ended:
        print(run["name"], run["state_type"], run["state"]["message"])
    assert sum(run["state_type"] == "COMPLETED" for run in ended) < len(ended) / 3
    new = {
        name: charges
        for name, charges in served.ledger.releases("income").items()
        if name not in known
    }
    due = f"income-{last_due():%Y%m%d-%H%M%S}"  # this one is the agency's, and whoever starts it
    assert all("-ad-hoc-" in name for name in new if name != due)
    asked = [
        charge.budget
        for charges in served.ledger.releases("income").values()
        for charge in charges.values()
        if charge.part
    ]
    assert 4 <= total(asked).alpha <= OPENED
    assert served.ledger.datasets() == datasets
    made = {path.relative_to(served.folder).parts for path in files(served.folder) - before}
    assert {parts[:2] for parts in made} <= {("out", "income"), ("out",)}
    assert {parts[2] for parts in made if len(parts) > 2} <= set(new)
    assert set(theirs.iterdir()) == own
