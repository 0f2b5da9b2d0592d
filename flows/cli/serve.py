"""``dprelease serve`` and ``dprelease deploy``: run plans on schedule and on demand with Prefect."""

import argparse
import os
from pathlib import Path
from typing import Any

from dpcore.errors import BudgetError, InputError
from flows.cli.arguments import add_command, add_ledger_argument, add_out_argument, show_progress

RUNS_AT_ONCE = 2


def add(commands: Any) -> None:
    """Add both commands to the parser."""
    serve = add_command(
        commands, "serve", _serve, "run a Prefect server and a worker for a folder of plans"
    )
    _folder_arguments(serve)
    add_out_argument(serve)
    serve.add_argument(
        "--port", type=int, default=4200, metavar="N", help="of the server; default: 4200"
    )
    add_ledger_argument(serve)
    deploy = add_command(
        commands, "deploy", _deploy, "deploy a folder of plans to a Prefect server that is running"
    )
    _folder_arguments(deploy)
    add_ledger_argument(deploy)


def _folder_arguments(parser: argparse.ArgumentParser) -> None:
    words, default = "the folder of plans; default: plans", Path("plans")
    parser.add_argument("--plans", type=Path, default=default, metavar="DIR", help=words)
    parser.add_argument(
        "--runs-at-once",
        type=int,
        default=RUNS_AT_ONCE,
        metavar="N",
        help=f"how many releases may run at the same time; default: {RUNS_AT_ONCE}",
    )


def _serve(options: argparse.Namespace) -> None:
    from flows.serve import serve

    _check(options)
    show_progress()
    serve(options.plans, options.out, options.port, options.runs_at_once, ready=_print_address)


def _print_address(address: str) -> None:
    print(address, flush=True)


def _deploy(options: argparse.Namespace) -> None:
    _check(options)
    if not os.environ.get("PREFECT_API_URL"):
        raise InputError(
            "set PREFECT_API_URL to the address of the Prefect server, such as"
            " http://127.0.0.1:4200/api"
        )
    show_progress()
    from httpx import HTTPError

    from flows.deploy import deploy

    try:
        names, refused = deploy(options.plans, options.runs_at_once)
    except HTTPError as error:
        raise InputError(
            "the Prefect server at PREFECT_API_URL does not answer as it should"
            f" ({type(error).__name__}): start it, or correct the address"
        ) from None
    print("\n".join(names))
    if refused:
        raise BudgetError("not every schedule was deployed; the reasons are above")


def _check(options: argparse.Namespace) -> None:
    if options.runs_at_once < 1:
        raise InputError("--runs-at-once: write a positive whole number")
