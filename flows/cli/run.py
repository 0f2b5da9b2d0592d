"""``dprelease run``: publish a release."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from dpcore.errors import ApprovalError, InputError
from flows.cli.approve import ask_officer
from flows.cli.arguments import (
    add_command,
    add_ledger_argument,
    add_out_argument,
    add_plan_arguments,
    read_overrides,
    show_progress,
)

if TYPE_CHECKING:
    from schemas.plan import Plan


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "run", _run, "publish a release and print the path of its bundle"
    )
    add_plan_arguments(parser)
    named = parser.add_mutually_exclusive_group()
    words = "names the release; the same id never charges or draws twice"
    named.add_argument("--release-id", metavar="ID", help=words)
    words = "make the release of a past due time of the plan's schedule, such as 2026-12-01T06:00"
    named.add_argument("--due", metavar="TIME", help=words)
    add_out_argument(parser)
    add_ledger_argument(parser)


def _run(options: argparse.Namespace) -> None:
    from schemas.identity import check_release_id
    from schemas.plan import load_plan

    overrides = read_overrides(options)
    plan = load_plan(options.plan, overrides)  # report a faulty plan before Prefect is started
    release_id = _id_when_due(options, plan) if options.due is not None else options.release_id
    if release_id is not None:
        check_release_id(release_id)
    show_progress()
    from flows.release import release

    publish = partial(
        release,
        plan=str(options.plan),
        release_id=release_id,
        out=str(options.out),
        overrides=overrides,
    )
    try:
        bundle = publish()
    except ApprovalError as waiting:
        if not waiting.release_id or not sys.stdin.isatty():
            raise
        ask_officer(plan.dataset, waiting.release_id)
        bundle = publish(release_id=waiting.release_id)
    print(bundle)


def _id_when_due(options: argparse.Namespace, plan: Plan) -> str:
    """The release id of a scheduled run that was due at the time of ``--due``."""
    from tasks.workplace.schedule import read_due, run_id

    schedule = plan.operation.schedule
    if schedule is None:
        raise InputError("--due: the plan has no operation.schedule; name the release --release-id")
    return run_id(options.plan, read_due(schedule, options.due, datetime.now(UTC)))
