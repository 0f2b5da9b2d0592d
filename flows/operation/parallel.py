"""Runs independent steps at the same time, in threads of this process, one for each processor."""

import os
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # without a flow run, steps run one after the other, and Prefect is not imported
    from prefect.futures import PrefectFuture
    from prefect.task_runners import TaskRunner

R = TypeVar("R")


def task_runner() -> "TaskRunner[Any]":
    """A Prefect task runner with one thread for each processor."""
    from prefect.task_runners import ThreadPoolTaskRunner

    return ThreadPoolTaskRunner(max_workers=os.cpu_count())


def wait_for_all(submitted: "Iterable[PrefectFuture[R] | Future[R]]") -> list[R]:
    """The results in the order of submission; an error is raised only after all have ended."""
    futures = list(submitted)
    if waiting := [future for future in futures if not isinstance(future, Future)]:
        from prefect.futures import wait

        wait(waiting)
    return [future.result() for future in futures]
