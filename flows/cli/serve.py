"""``dprelease serve`` and ``dprelease deploy``: run plans on schedule and on demand with Prefect."""

import gc
import os
from functools import partial
from typing import Annotated

from cyclopts import Parameter

from dpcore.errors import BudgetError, InputError, ServerError
from flows.cli.arguments import LEDGER_ANSWER, LINES, LedgerOutput, LedgerProgress, Out, Plans

RUNS_AT_ONCE = 2
GARBAGE_OF_A_SERVICE = 700  # as usual in Python: each client leaves a megabyte of garbage
RunsAtOnce = Annotated[
    int,
    Parameter(
        metavar="N",
        help=f"the most runs at the same time, of all workers together; default: {RUNS_AT_ONCE}",
    ),
]


def serve(
    *,
    plans: Plans = None,
    runs_at_once: RunsAtOnce = RUNS_AT_ONCE,
    out: Out = None,
    port: Annotated[int, Parameter(metavar="N", help="of the server; default: 4200")] = 4200,
    progress: LedgerProgress = LINES,
) -> None:
    """Run a Prefect server and a worker for a folder of plans."""
    from flows.deployment import serve as service
    from tasks.workplace.plans import plans_folder, published_folder

    _check(runs_at_once)
    gc.set_threshold(GARBAGE_OF_A_SERVICE)  # unlike a command it lives for years
    folders = plans or plans_folder(), out or published_folder()
    with progress.shown():
        service.serve(*folders, port, runs_at_once, ready=partial(print, flush=True))


def deploy(
    *,
    plans: Plans = None,
    runs_at_once: RunsAtOnce = RUNS_AT_ONCE,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Deploy a folder of plans to a Prefect server that is running."""
    _check(runs_at_once)
    if not os.environ.get("PREFECT_API_URL"):
        raise InputError(
            "set PREFECT_API_URL to the address of the Prefect server, such as"
            " http://127.0.0.1:4200/api"
        )
    with output.shown():
        from httpx import HTTPError

        from flows.deployment import deploy as deployment
        from flows.operation.gate import trouble
        from flows.operation.lost import watch_over_runs
        from tasks.workplace.plans import plans_folder

        try:
            names, refused = deployment.deploy(plans or plans_folder(), runs_at_once)
            watch_over_runs()
        except HTTPError as error:
            raise ServerError(f"the Prefect server at PREFECT_API_URL {trouble(error)}") from None
    output.answer("\n".join(names), {"deployed": names, "refused": refused})
    if refused:
        raise BudgetError("not every schedule was deployed; the reasons are above")


def _check(runs_at_once: int) -> None:
    if runs_at_once < 1:
        raise InputError("--runs-at-once: write a positive whole number")
