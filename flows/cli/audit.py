"""``dprelease audit``: test a plan's privacy."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpcore.errors import AuditError, InputError
from flows.cli.arguments import (
    add_command,
    add_plan_arguments,
    read_overrides,
    require_svg,
    show_progress,
    write_file,
)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "audit", _audit, "test a plan's privacy as an attacker would")
    add_plan_arguments(parser)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="make fewer draws, and skip the test of ingest, validation and tally",
    )
    parser.add_argument(
        "--draws",
        type=int,
        metavar="N",
        help="how often to draw on each of two neighbouring tables",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="write the loss functions as SVG (FILE ends in .svg)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def _audit(options: argparse.Namespace) -> None:
    from schemas.plan import load_plan
    from tasks.explain.explain import text_table

    overrides = read_overrides(options)
    plan = load_plan(options.plan, overrides)
    if options.draws is not None and options.draws < 1:
        raise InputError("--draws: write a positive whole number")
    require_svg(options.plot)
    show_progress()
    from flows.audit import audit
    from tasks.audit.audit import picture_of, result_rows

    failure: AuditError | None = None
    try:
        results: Sequence[Any] = audit(str(options.plan), options.quick, options.draws, overrides)
    except AuditError as error:
        failure, results = error, error.results
    if options.json:
        print(json.dumps([result.to_dict() for result in results], indent=2))
    elif results:
        print(text_table(result_rows(plan, results)))
    try:
        if options.plot is not None and results:
            write_file("--plot", options.plot, picture_of(plan, results))
    finally:
        if failure:  # a plot that cannot be written must not hide it
            raise failure
