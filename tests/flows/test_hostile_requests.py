"""Whoever may open Prefect's page asks a real server for what no plan opens, and gets none of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from dpcore.accounting.budget import total
from flows.operation.gate import REFUSAL
from flows.operation.lost import POOL
from tests.flows.served import WHOLE, Served, last_due

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
Change = tuple[str, str, dict[str, Any]]


def at(due: datetime) -> dict[str, Any]:
    """A run that is due then."""
    return {"state": {"type": "SCHEDULED", "state_details": {"scheduled_time": due.isoformat()}}}


def hostile_requests(theirs: Path) -> Iterator[Request]:
    """At least forty: of the release that is on a schedule, of the form, of the audit."""
    plan = str(theirs / "plan.yaml")
    for more in (
        {"overrides": RICHER},
        {"out": str(theirs)},
        {"release_id": "mine"},
        {"overrides": RICHER, "out": str(theirs), "release_id": "mine"},
        {"plan": plan},
        {"plan": plan, "overrides": RICHER},
        {"plan": "../plans/income.yaml"},
        {"plan": "health"},
        {"plan": "draft"},
        {"plan": ""},
        {"plan": None},
        {"plan": ["income"]},
        {"source": plan},
    ):
        yield RELEASE, {"parameters": {"plan": "income"} | more} | at(last_due())
    now = datetime.now(UTC)
    for due in (
        now,
        last_due() + timedelta(days=70),
        last_due() - timedelta(days=90),
        last_due() + timedelta(minutes=1),
        datetime(1970, 1, 1, 0, 15, tzinfo=UTC),
        datetime(2999, 1, 1, 0, 15, tzinfo=UTC),
    ):
        yield RELEASE, at(due)
    yield RELEASE, {"parameters": {}}
    yield RELEASE, {"idempotency_key": "again"}
    for variables in (
        {"env": {"DPRELEASE_LEDGER": f"sqlite:///{theirs}/ledger.sqlite"}},
        {"env": {"DPRELEASE_OUT": str(theirs), "DPRELEASE_PLANS": str(theirs)}},
        {"command": f"touch {theirs}/touched"},
        {"working_dir": str(theirs)},
    ):
        yield RELEASE, {"job_variables": variables} | at(last_due())
        yield AD_HOC, {"job_variables": variables, "parameters": WHOLE | {"plan": "income"}}
    for more in (
        {"releases": ["income: wealth"]},
        {"releases": ["income: people", "health: people"]},
        {"alpha": "1000000"},
        {"alpha": "-1"},
        {"overrides": RICHER},
        {"out": str(theirs)},
        {"plan": plan},
        {"requester": "two\nlines"},
        {"tables": ["sex x income"]},
        {"models": ["{income > 5000} ~ sex"]},
        {"means": ["age by sex"]},
        {"records": True, "alpha": "1000000"},
        {"records": True, "dry_run": False},  # it waits, and nobody agrees
    ):
        yield AD_HOC, {"parameters": WHOLE | {"plan": "income"} | more}
    yield AUDIT, {"parameters": {"plan": plan}}
    yield AUDIT, {"parameters": {"plan": "income", "overrides": RICHER, "draws": 1}}
    for alpha in (
        "",
        "3.9",
        "3.8",
    ):  # each would be right, and together they are more than is opened
        yield AD_HOC, {"parameters": WHOLE | {"plan": "income", "alpha": alpha}}


def files(folder: Path) -> set[Path]:
    """Every file that is not the server's own, or the ledger."""
    mine = (folder / "home", folder / "ledger.sqlite")
    return {path for path in folder.rglob("*") if not any(path.is_relative_to(own) for own in mine)}


def changes_of_what_a_worker_runs(served: Served, program: str) -> Iterator[Change]:
    """Requests with the login alone to have a worker run a program; ``test_gate`` knows all others."""
    run_it = {"job_configuration": {"command": program}, "variables": {}}
    release = served.deployment(*RELEASE)
    flow = {"flow_id": release["flow_id"], "name": "mine", "work_pool_name": POOL}
    yield "PATCH", f"/work_pools/{POOL}", {"base_job_template": run_it}
    yield "DELETE", f"/deployments/{release['id']}", {}
    pull = [{"prefect.deployments.steps.run_shell_script": {"script": program}}]
    yield "POST", "/deployments/", flow | {"entrypoint": "os:abort", "pull_steps": pull}
    yield "POST", "/block_documents/filter", {"include_secrets": True}
    theirs = {"storage_key": program, "serializer": {"type": "pickle", "picklelib": "pickle"}}
    completed = {"state": {"type": "COMPLETED", "data": theirs}}
    run = served.first_due(release)["id"]
    yield "POST", f"/flow_runs/{run}/set_state", completed | {"force": True}
    yield "POST", f"/deployments/{release['id']}/create_flow_run", completed


def test_the_login_alone_changes_nothing_of_what_workers_run(served, tmp_path):
    def settings() -> str:
        pool = served.api("GET", f"/work_pools/{POOL}")
        deployments = served.api("POST", "/deployments/filter", sort="NAME_ASC")
        kept = ("name", "entrypoint", "path", "parameters", "paused", "schedules", "job_variables")
        return str(
            [pool["base_job_template"], pool["is_paused"]]
            + [[each[key] for key in kept] for each in deployments]
        )

    before, touched = settings(), tmp_path / "touched"
    changes = list(changes_of_what_a_worker_runs(served, f"touch {touched}"))
    for method, path, document in changes:
        with pytest.raises(httpx.HTTPStatusError) as refused:
            served.api(method, path, **document)
        assert refused.value.response.json()["detail"] == REFUSAL, (method, path)
    assert settings() == before
    asked = served.ask("income", dry_run=True)["id"]  # by the agency's own program
    assert served.settled(asked)["state_type"] == "PAUSED"
    assert not touched.exists()
    assert served.key not in str(served.api("GET", "/admin/settings"))
    for log in (served.folder / "home" / "server").glob("*.log"):
        assert served.key not in log.read_text()
    # With the key the same requests arrive.
    served.own("PATCH", f"/work_pools/{POOL}", is_paused=True)
    served.own("PATCH", f"/work_pools/{POOL}", is_paused=False)


def test_forty_hostile_requests_are_charged_no_more_than_is_opened(served, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    document = yaml.safe_load((served.folder / "plans" / "income.yaml").read_text())
    document |= {"dataset": "theirs", "source": str(served.folder / "plans" / "survey.parquet")}
    (theirs / "plan.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    before, own = files(served.folder), set(theirs.iterdir())
    known, datasets = set(served.ledger.releases("income")), served.ledger.datasets()
    runs, by_worker, requests = [], {}, list(hostile_requests(theirs))
    assert len(requests) >= 40
    with served.resting():
        for (flow, name), body in requests:
            deployment = served.deployment(flow, name)["id"]
            try:
                path = f"/deployments/{deployment}/create_flow_run"
                run = served.api("POST", path, **({"enforce_parameter_schema": False} | body))
            except httpx.HTTPStatusError as refused:
                if refused.response.status_code not in (403, 409, 422):
                    raise
                continue
            runs.append(run["id"])
            by_worker.setdefault(flow, run["id"])  # the server's own; others in one process
        assert len(runs) > 25
        assert len(by_worker) == 3
        served.carry_out([run for run in runs if run not in by_worker.values()])
    for run in by_worker.values():
        served.start_now(run)
        assert served.settled(run)["state_type"] != "COMPLETED"
    ended = [served.api("GET", f"/flow_runs/{run}") for run in runs]
    for run in ended:
        print(run["name"], run["state_type"], run["state"]["message"])
    assert sum(run["state_type"] == "COMPLETED" for run in ended) < len(ended) / 4
    assert any("choose releases of one plan" in str(run["state"]["message"]) for run in ended)
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
        if charge.open_fraction
    ]
    assert 4 <= total(asked).alpha <= OPENED
    assert served.ledger.datasets() == datasets
    made = {path.relative_to(served.folder).parts for path in files(served.folder) - before}
    assert {parts[:2] for parts in made} <= {("out", "income"), ("out",)}
    assert {parts[2] for parts in made if len(parts) > 2} <= set(new)
    assert set(theirs.iterdir()) == own
