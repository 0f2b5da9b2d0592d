"""Who is told when a run fails, an audit finds too much, or a budget runs low: Prefect hooks."""

from typing import Any

from prefect import Flow
from prefect.client.schemas.objects import FlowRun, State

from dpcore.errors import ApprovalError, AuditError, BudgetError, DPReleaseError, InputError
from flows.identity import release_id_of
from schemas.plan import Plan, load_plan
from tasks.home import ledger_url
from tasks.ledger import Ledger
from tasks.notify import notify
from tasks.plans import find_plan

TROUBLES = (
    (AuditError, "an audit found more privacy loss than is claimed"),
    (BudgetError, "the budget refuses"),
    (ApprovalError, "not approved"),
    (InputError, "the plan, the survey or what it needs is not as declared"),
)
CRASHED = "the run was killed or lost"
LOW = "the budget is low"


def tell_failure(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Tell what kind of trouble ended a run, and after how many attempts."""
    error = state.result(raise_on_failure=False)
    trouble = next((words for kind, words in TROUBLES if isinstance(error, kind)), "failed")
    attempts = f", after {flow_run.run_count} attempts" if flow_run.run_count > 1 else ""
    notify(*_names(flow, flow_run), trouble + attempts)


def tell_crash(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Tell that a run ended without a word."""
    notify(*_names(flow, flow_run), CRASHED)


def tell_low_budget(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Tell where a dataset has less left than its plan wants to be warned of."""
    plan = _plan(flow_run)
    if plan is None:
        return
    left = Ledger(ledger_url(), create=False).remaining(plan.dataset)
    if not left.covers(plan.operation.warn_below.budget):
        notify(*_names(flow, flow_run), f"{LOW}: {left} left")


HOOKS: dict[str, Any] = {
    "on_failure": [tell_failure],
    "on_crashed": [tell_crash],
    "on_completion": [tell_low_budget],
}


def _plan(run: FlowRun) -> Plan | None:
    try:
        plan = find_plan(str(run.parameters["plan"]))
        return load_plan(plan, run.parameters.get("overrides"))
    except (DPReleaseError, KeyError):
        return None


def _names(flow: Flow[..., Any], run: FlowRun) -> tuple[str, str]:
    """Dataset and release id of a run, as far as they can be known."""
    plan, written = _plan(run), str(run.parameters.get("plan"))
    dataset = plan.dataset if plan else f"plan {written}"
    return dataset, run.parameters.get("release_id") or release_id_of(flow.name, run, written)
