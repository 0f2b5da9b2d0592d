"""``dprelease run``: publish a release."""

import argparse
import sys
from functools import partial
from typing import Any

from dpcore.errors import ApprovalError
from flows.cli.approve import ask_officer
from flows.cli.arguments import (
    add_command,
    add_ledger_argument,
    add_out_argument,
    add_plan_arguments,
    read_overrides,
    show_progress,
)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "run", _run, "publish a release and print the path of its bundle"
    )
    add_plan_arguments(parser)
    words = "names the release; the same id never charges or draws twice"
    parser.add_argument("--release-id", metavar="ID", help=words)
    add_out_argument(parser)
    add_ledger_argument(parser)


def _run(options: argparse.Namespace) -> None:
    from schemas.plan import check_release_id, load_plan

    overrides = read_overrides(options)
    plan = load_plan(options.plan, overrides)  # report a faulty plan before Prefect is started
    if options.release_id is not None:
        check_release_id(options.release_id)
    show_progress()
    from flows.release import release

    publish = partial(
        release,
        plan=str(options.plan),
        release_id=options.release_id,
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
