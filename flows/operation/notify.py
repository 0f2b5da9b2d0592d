"""Prefect hooks that notify the operator of runs that fail, crash or are late, of a low budget, and of
bundles that were damaged."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State

from dpcore.errors import (
    ApprovalError,
    AuditError,
    BudgetError,
    BundleError,
    DataError,
    DPReleaseError,
    InputError,
    LedgerError,
    LostLedgerError,
    PlanError,
    ServerError,
    UnreadableError,
    UnusableLedgerError,
)
from flows.operation.exhaustion import covered, pause_schedule
from flows.operation.identity import release_id_of
from flows.operation.lost import free_slots
from flows.operation.once import first_time, notify_once
from schemas.plan import Plan, load_plan
from tasks.budget.schedule import MOST_LATE, late_releases
from tasks.bundle.digests import is_bundle
from tasks.bundle.folders import folders_in
from tasks.bundle.verify import read_manifest
from tasks.explain.runs import runs_left, runs_text
from tasks.ledger import Action, Ledger
from tasks.workplace.home import ledger_exists, ledger_url
from tasks.workplace.notify import notify
from tasks.workplace.plans import find_plan, known_plan, plan_name, plans_in, published_folder

TROUBLES = (
    (AuditError, "an audit found more privacy loss than is claimed"),
    (BudgetError, "the budget does not allow the release"),
    (ApprovalError, "not approved"),
    (BundleError, "a bundle is damaged or contradicts the ledger"),
    (LostLedgerError, "a published bundle or a draw is missing in the ledger"),
    (UnusableLedgerError, "the ledger cannot be reached, or is damaged"),
    (LedgerError, "another plan, price or decision was recorded under this release id"),
    (UnreadableError, "a bundle or its folder cannot be read"),
    (PlanError, "the plan is missing or not valid"),
    (DataError, "the survey table does not fit the plan"),
    (ServerError, "the Prefect server does not answer"),
    (InputError, "the survey's source, a file or a setting is missing or cannot be used"),
)
CRASHED = "the run ended without giving a reason: it was killed, or stopped sending heartbeats"
LOW = "the budget is low"
LONG_AGO = timedelta(hours=1)
MOST_SINGLY = 3
"""At most this many late releases of a plan are notified one by one."""


def notify_failure(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Notify of the kind of error that ended a run, and of the number of attempts."""
    # Without `_sync`, Prefect returns a coroutine if an event loop runs, as in a notebook.
    error = state.result(raise_on_failure=False, _sync=True)  # type: ignore[call-overload]
    trouble = next((words for kind, words in TROUBLES if isinstance(error, kind)), "failed")
    if isinstance(error, BudgetError) and flow_run.auto_scheduled and flow_run.deployment_id:
        dataset, release_id = names_of(flow.name, flow_run)
        pauses = f"{trouble}; the schedule is paused until the dataset is granted more"
        event = f"{_asked(flow_run)['plan']}: {trouble}, {_last_grant(dataset)}"
        notify_once(dataset, release_id, pauses, event)
        with get_client(sync_client=True) as client:
            pause_schedule(client, flow_run.deployment_id)
        return
    attempts = f", after {flow_run.run_count} attempts" if flow_run.run_count > 1 else ""
    notify(*names_of(flow.name, flow_run), trouble + attempts)


def notify_crash(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Notify that a run ended without a reported error."""
    notify(*names_of(flow.name, flow_run), CRASHED)


def notify_lost(runs: Iterable[tuple[str, FlowRun]]) -> None:
    """Notify of runs that ended while no worker could report it; ``runs``: flow name and run."""
    for flow, run in runs:
        notify(*names_of(flow, run), CRASHED)


def notify_low_budget(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Notify if the dataset's budget covers only a few more runs of the plan's schedule."""
    plan = _plan(flow_run)
    if plan is None or plan.operation.schedule is None:
        return
    ledger = Ledger(ledger_url(), create=False)
    left, most = ledger.remaining(plan.dataset), plan.operation.warn_runs
    if runs_left(plan, left, ledger) <= most:
        words = runs_text(plan, left, datetime.now(UTC), ledger)
        grant = _last_grant(plan.dataset)
        event = f"{_asked(flow_run)['plan']}: at most {most} runs left, {grant}"
        notify_once(*names_of(flow.name, flow_run), f"{LOW}: it covers {words}", event)


def notify_late(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """In a scheduled run, notify of the plan's other due times that have passed without a release."""
    plan = _plan(flow_run)
    if plan is None or not flow_run.auto_scheduled or not ledger_exists():
        return
    _notify_of_late(plan, find_plan(_asked(flow_run)["plan"]), names_of(flow.name, flow_run)[1])


def notify_missed(folder: Path) -> None:
    """Notify of due times that passed long ago without a release, also for plans that have no run now.

    Schedules that are paused for lack of budget are left out, because their pause was notified.
    """
    if not ledger_exists():
        return
    for path in plans_in(folder).values():
        with suppress(DPReleaseError):
            plan = load_plan(path)
            if covered(plan, Ledger(ledger_url(), create=False)):
                _notify_of_late(plan, path, since=LONG_AGO)


def notify_damaged(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Notify of the dataset's bundles with unreadable manifests, which the release ignored."""
    plan = _plan(flow_run)
    if plan is None:
        return
    out = Path(_asked(flow_run).get("out") or published_folder())
    for name, bundle in folders_in(out / plan.dataset).items():
        try:
            if is_bundle(bundle):
                read_manifest(bundle)
        except DPReleaseError as error:
            found = "cannot be read" if isinstance(error, UnreadableError) else "is damaged"
            trouble = f"its bundle {found}; see `dprelease ledger check`"
            notify_once(plan.dataset, name, trouble, f"{name} {found}")


def _notify_of_late(plan: Plan, path: Path, but: str = "", since: timedelta = timedelta()) -> None:
    """Notify once of each late release; many new ones (a clock or server had stopped) share a notice."""
    ledger = Ledger(ledger_url(), create=False)
    found = late_releases(plan, path, ledger, datetime.now(UTC) - since)
    late = [each for each in found if each.release_id != but]
    # One more than are notified singly shows that there are many. No further requests are needed.
    new = [
        each
        for each in late[-MOST_SINGLY - 1 :]
        if first_time(plan.dataset, f"{each.release_id} is late")
    ]
    see = "see `dprelease ledger check`"
    if len(new) > MOST_SINGLY:
        number = f"at least {MOST_LATE:,}" if len(found) == MOST_LATE else f"{len(late)}"
        trouble = f"{number} releases are late, the first of them {late[0].release_id}; {see}"
        notify(plan.dataset, late[-1].release_id, trouble)
        return
    for each in new:
        notify(each.dataset, each.release_id, f"{each.what}; {see}")


def restart_forgotten(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Restart runs that occupy a slot of the pool although no process works on them."""
    free_slots()


def remove_stored_error(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Remove the file with the error that Prefect writes for every failed run, and never removes."""
    stored = getattr(state.data, "metadata", None)
    if stored is not None and stored.storage_key:
        Path(stored.storage_key).unlink(missing_ok=True)


HOOKS: dict[str, Any] = {
    "on_failure": [notify_failure, notify_late, restart_forgotten, remove_stored_error],
    "on_crashed": [notify_crash, notify_late, restart_forgotten],
    "on_completion": [notify_low_budget, notify_late, notify_damaged, restart_forgotten],
}


def _last_grant(dataset: str) -> str:
    """Identifies the dataset's last grant: after a new one, notices about the budget are sent again."""
    history = Ledger(ledger_url(), create=False).history(dataset) if ledger_exists() else []
    grants = [line.at for line in history if line.action is Action.GRANT]
    return f"granted at {max(grants, default='no time')}"


def _asked(run: FlowRun) -> dict[str, Any]:
    """The arguments of a run; for a deployment only the plan, as anybody may have set the others."""
    kept = {"plan": str(run.parameters.get("plan"))}
    if run.deployment_id:
        return kept | {"plan": plan_name(Path(kept["plan"]))}
    return run.parameters | kept


def _plan(run: FlowRun) -> Plan | None:
    asked = _asked(run)
    try:
        path = known_plan(asked["plan"]) if run.deployment_id else find_plan(asked["plan"])
        return load_plan(path, asked.get("overrides"))
    except DPReleaseError:
        return None


def names_of(flow: str, run: FlowRun) -> tuple[str, str]:
    """The dataset and release id of a run of the named flow; the plan's name if the plan cannot be
    read."""
    plan, asked = _plan(run), _asked(run)
    dataset = plan.dataset if plan else f"plan {asked['plan']}"
    return dataset, asked.get("release_id") or release_id_of(flow, run, asked["plan"])
