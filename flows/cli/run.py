"""``dprelease run``: publish a release."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dpcore.errors import InputError, ServerError
from flows.cli.arguments import LEDGER_ANSWER, Changes, LedgerOutput, Out, PlanFile, read_changes

if TYPE_CHECKING:
    from schemas.plan import Plan


def run(
    plan: PlanFile,
    /,
    *,
    changes: Changes = (),
    release_id: Annotated[
        str | None,
        Parameter(
            metavar="ID",
            help="name of the release; the same id is never charged or drawn twice",
        ),
    ] = None,
    due: Annotated[
        str | None,
        Parameter(
            metavar="TIME",
            help="make the release for a past due time of the plan's schedule, such as 2026-12-01T06:00",
        ),
    ] = None,
    out: Out = None,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Publish a release and print the path of its bundle."""
    from schemas.plan import load_plan
    from schemas.plan.identity import check_release_id
    from tasks.workplace.events import record_event
    from tasks.workplace.plans import published_folder

    overrides = read_changes(changes)
    loaded = load_plan(plan, overrides)  # report a faulty plan before Prefect is started
    if due is not None:
        if release_id is not None:
            raise InputError("--due names the release: leave out --release-id")
        release_id = _id_when_due(plan, loaded, due)
    if release_id is not None:
        check_release_id(release_id)
    with output.shown(loaded):
        from flows.release import release

        try:
            bundle = release(str(plan), release_id, str(out or published_folder()), overrides)
        except ServerError as lost:
            if lost.before_the_run:
                names = {"dataset": loaded.dataset, "release_id": release_id or ""}
                record_event("run", **names, outcome=str(lost.exit_code), seconds=0)
            raise
    facts = {"bundle": bundle, "dataset": loaded.dataset, "release_id": Path(bundle).name}
    output.answer(bundle, facts)


def _id_when_due(path: Path, plan: Plan, due: str) -> str:
    """The release id of a scheduled run that was due at the time of ``--due``."""
    from tasks.workplace.schedule import read_due, run_id

    schedule = plan.operation.schedule
    if schedule is None:
        raise InputError(
            "--due: the plan has no operation.schedule; name the release with --release-id"
        )
    return run_id(path, read_due(schedule, due, datetime.now(UTC)))
