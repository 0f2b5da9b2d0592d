"""Runs independent steps at the same time.

By default they run in threads of this process, one for each processor.  With the address of a Dask
scheduler in DPRELEASE_DASK they run on its workers, which need the same home folder and ledger: steps
receive the path of the private workspace, never values.
"""

import os
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from dpcore.errors import InputError

if TYPE_CHECKING:  # without a flow run, steps run one after the other, and Prefect is not imported
    from prefect.futures import PrefectFuture
    from prefect.task_runners import TaskRunner

R = TypeVar("R")

ANSWERS_WITHIN = 10
"""Seconds to wait for a scheduler."""


def task_runner() -> "TaskRunner[Any]":
    """The runner that the environment asks for; raises ``InputError`` if it is not installed."""
    from prefect.task_runners import ThreadPoolTaskRunner

    scheduler = os.environ.get("DPRELEASE_DASK")
    if not scheduler:
        return ThreadPoolTaskRunner(max_workers=os.cpu_count())
    try:
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError:
        raise InputError(
            'DPRELEASE_DASK needs prefect-dask; run: pip install "dprelease[dask]"'
        ) from None
    runner: TaskRunner[Any] = DaskTaskRunner(address=scheduler)
    return runner


def require_workers() -> None:
    """Raise ``InputError`` if the scheduler in the environment does not answer."""
    scheduler = os.environ.get("DPRELEASE_DASK")
    if not scheduler:
        return
    import distributed

    connect: Any = distributed.Client
    try:
        connect(scheduler, timeout=ANSWERS_WITHIN, set_as_default=False).close()
    except (OSError, ValueError, TimeoutError):
        raise InputError(
            f"DPRELEASE_DASK: no scheduler answers at {scheduler}; start one there, or unset it"
        ) from None


def wait_for_all(submitted: "Iterable[PrefectFuture[R] | Future[R]]") -> list[R]:
    """The results in the order of submission; an error is raised only after all have ended."""
    futures = list(submitted)
    if waiting := [future for future in futures if not isinstance(future, Future)]:
        from prefect.futures import wait

        wait(waiting)
    return [future.result() for future in futures]
