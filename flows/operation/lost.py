"""Ends the runs that a killed worker left behind; otherwise each would occupy one of the pool's slots.

``dprelease serve`` ends them at its start, before its worker runs.  For workers on other machines, two
automations of the Prefect server watch the runs: a run without heartbeats counts as crashed, and a run
that a worker took and never began starts again. The server may forget runs of the second kind. So every
run that ends looks for them, and so does ``dprelease deploy``.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.events import emit_event
from prefect.events.schemas.automations import AutomationCore
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from prefect.states import Crashed, Scheduled

from tasks.workplace.step import log_line

TAG = "dprelease"
POOL = "dprelease"
LOST = (
    "sends no heartbeats: it was killed, or its machine is too slow or cut off. Retry it; this costs"
    " nothing more"
)

RUN = "prefect.flow-run"
SILENT_BEATS = 3
BEGINS_WITHIN = timedelta(minutes=5)
FORGOTTEN_AFTER = 2 * BEGINS_WITHIN
TAKEN = ("Pending", "Submitting", "InfrastructurePending")
"""Names of events contain names of states; one type of state has several names."""

SETTLED = ("Scheduled", "AwaitingRetry", "Late", "Suspended", "Paused", "Cancelling", "Cancelled")
BEGUN = ("heartbeat", "Running", "Retrying", "Completed", "Failed", "Crashed", "TimedOut")

_TAGGED = {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{TAG}"}


def end_lost_runs() -> list[tuple[str, FlowRun]]:
    """End the runs that a killed worker of this machine's pool left.

    Returns the runs that had begun, as pairs of flow name and run.
    """
    ended = []
    with get_client(sync_client=True) as client:
        # Repeated until no run is left, because the server lists a limited number at a time.
        while runs := _runs_of_pool(client, StateType.PENDING, StateType.RUNNING):
            for run in runs:
                lost = run.state_type == StateType.RUNNING
                state: State[Any] = Crashed(message=LOST) if lost else Scheduled()
                client.set_flow_run_state(run.id, state, force=True)
                log_line(f"{run.name}: {LOST}" if lost else f"{run.name}: starts again")
                if lost:
                    ended.append((client.read_flow(run.flow_id).name, run))
    return ended


def free_slots() -> None:
    """Restart the runs that a worker took long ago and never began.

    The server does this sooner, but forgets some runs if it is stopped meanwhile.
    """
    long_ago = datetime.now(UTC) - FORGOTTEN_AFTER
    with get_client(sync_client=True) as client:
        for run in _runs_of_pool(client, StateType.PENDING):
            if run.state is not None and run.state.timestamp < long_ago:
                client.set_flow_run_state(run.id, Scheduled(), force=True)
                log_line(f"{run.name}: starts again")


def _runs_of_pool(client: SyncPrefectClient, *types: StateType) -> list[FlowRun]:
    """The first runs of this pool with states of these ``types``, as many as the server lists."""
    states = FlowRunFilterState(type=FlowRunFilterStateType(any_=list(types)))
    mine = WorkPoolFilter(name=WorkPoolFilterName(any_=[POOL]))
    return client.read_flow_runs(flow_run_filter=FlowRunFilter(state=states), work_pool_filter=mine)


def watch_over_runs() -> None:
    """Make the server end or restart runs that a worker left behind."""
    free_slots()
    with get_client(sync_client=True) as client:
        for automation in watches():
            known = client.read_automations_by_name(automation.name)
            if known:
                client.update_automation(known[0].id, automation)
            else:
                client.create_automation(automation)


def watches() -> Iterator[AutomationCore]:
    """Yield the two automations that watch over runs.

    Workers and the machine that deploys must have the same ``PREFECT_FLOWS_HEARTBEAT_FREQUENCY``.
    """
    beat = timedelta(seconds=get_current_settings().flows.heartbeat_frequency or 180)
    yield _unless(
        "dprelease: a run sends no heartbeats",
        {f"{RUN}.heartbeat"},
        {f"{RUN}.*"},
        SILENT_BEATS * beat,
        {"state": "CRASHED", "message": LOST},
    )
    yield _unless(
        "dprelease: a run was taken and never began",
        {f"{RUN}.{state}" for state in TAKEN},
        {f"{RUN}.{state}" for state in (*SETTLED, *BEGUN)},
        BEGINS_WITHIN,
        {"state": "SCHEDULED", "force": True},
    )


def say_that_it_waits() -> None:
    """Make the server expect no heartbeats from the current run, which was suspended."""
    # Prefect's own event has the time of the server's clock, which may be before the last heartbeat, and
    # a restarted server delays it by 15 minutes, because it has not seen the preceding state's event.
    run = {"prefect.resource.id": f"{RUN}.{flow_run.id}"}
    emit_event(f"{RUN}.waits", run, related=[_TAGGED])


def _unless(
    name: str, after: set[str], expect: set[str], within: timedelta, change: dict[str, Any]
) -> AutomationCore:
    """An automation that changes a run's state if no event of ``expect`` follows one of ``after`` in
    time."""
    trigger = {
        "type": "event",
        "posture": "Proactive",
        "after": after,
        "expect": expect,
        "for_each": {"prefect.resource.id"},
        "match": {"prefect.resource.id": f"{RUN}.*"},
        "match_related": _TAGGED,
        "threshold": 1,
        "within": within,
    }
    action = {"type": "change-flow-run-state", **change}
    return AutomationCore.model_validate({"name": name, "trigger": trigger, "actions": [action]})
