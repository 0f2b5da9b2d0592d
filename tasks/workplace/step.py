"""One step of a flow: a function that leaks nothing private, and inside a flow run a Prefect task.

Elsewhere, as in ``dprelease.release``, it is a plain function, and Prefect is not even imported.

Prefect writes exceptions, results and cached values to its database, and a data library's exception
may quote a private value.  So a step

- never persists or caches its result;
- raises only dprelease's own errors, whose texts hold no private value, without the exceptions that
  caused them;
- replaces any other exception by one that names the step and the exception's type.  The trace goes
  to an owner-only file under ``failures`` in dprelease's home, for the operator.

Steps report their progress in public lines.  The command line prints them; under Prefect they reach
the run's log if PREFECT_LOGGING_EXTRA_LOGGERS names the logger ``dprelease``.  Each line of a step has
its ``StepProgress`` as the attribute ``moment``; lines that only bars need have level DEBUG.
"""

import errno
import functools
import inspect
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from dpcore.errors import DPReleaseError, ServerError
from dpcore.progress import reporting
from tasks.workplace.events import record_event
from tasks.workplace.home import home, private_folder

if TYPE_CHECKING:  # a step is a task only where Prefect runs
    from prefect import Task
    from prefect.futures import PrefectFuture

P = ParamSpec("P")
R = TypeVar("R")
LOGGER = logging.getLogger("dprelease")


@dataclass(frozen=True)
class StepProgress:
    """The progress of a step: ``done`` of ``of``, both 1 at its end.

    ``step``: its name; ``about``: the release or synthetic table it works on, or "".
    """

    step: str
    about: str
    words: str
    done: int
    of: int


def log_line(line: str, moment: StepProgress | None = None, level: int = logging.INFO) -> None:
    """Show a line to the person who waits.  ``line`` must be public."""
    LOGGER.log(level, line, extra={"moment": moment})


def in_flow_run() -> bool:
    """Whether this is called inside a run of a Prefect flow."""
    context = sys.modules.get("prefect.context")
    return context is not None and context.FlowRunContext.get() is not None


class Step(Generic[P, R]):
    """A step; ``fn`` is its function, which leaks nothing private."""

    def __init__(self, fn: Callable[P, R], name: str, run_name: str) -> None:
        self.fn, self.name, self.run_name = fn, name, run_name
        functools.update_wrapper(self, fn)

    @cached_property
    def task(self) -> "Task[P, R]":
        """The step as a Prefect task that stores no result."""
        from prefect import task
        from prefect.cache_policies import NO_CACHE

        # A cache policy can make Prefect store the result, so caching is switched off too.
        return task(
            name=self.name,
            task_run_name=self.run_name,
            persist_result=False,
            cache_policy=NO_CACHE,
            log_prints=False,
        )(self.fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if in_flow_run():
            call: Any = self.task
            done: R = call(*map(_unsearched, args), **kwargs)
            return done
        return self.fn(*args, **kwargs)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> "PrefectFuture[R] | Future[R]":
        """Run the step in parallel with others; outside a flow run, run it immediately."""
        if in_flow_run():
            submit: Any = self.task.submit
            future: PrefectFuture[R] = submit(*map(_unsearched, args), **kwargs)
            return future
        done: Future[R] = Future()
        done.set_result(self.fn(*args, **kwargs))
        return done


def _unsearched(argument: object) -> object:
    """Mark an argument so that Prefect does not search it for futures."""
    from prefect.utilities.annotations import quote

    # The search of a plan with 100,000 categories took two thirds of a run.
    return argument if isinstance(argument, str) else quote(argument)


def step(name: str, run_name: str | None = None) -> Callable[[Callable[P, R]], Step[P, R]]:
    """Decorator that makes a function a step; ``run_name``: a template over its (public) parameters."""

    def decorate(function: Callable[P, R]) -> Step[P, R]:
        return Step(guard(function, run_name or name, name), name, run_name or name)

    return decorate


def guard(function: Callable[P, R], label: str, name: str = "") -> Callable[P, R]:
    """Wrap a function so that its errors are public and its beginning, progress and end are reported."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        started = time.perf_counter()
        try:
            arguments = signature.bind(*args, **kwargs).arguments
            words = label.format(**arguments)
            begun = StepProgress(name, str(arguments.get("name", "")), words, 0, 1)
            log_line(f"           {words} ...", begun, logging.DEBUG)
            with reporting(_progress_listener(begun)):
                result = function(*args, **kwargs)
        except DPReleaseError as error:
            public: DPReleaseError = type(error)(*error.args)
        except Exception as error:
            if _of_prefect(error):
                raise
            public = _lost(error) or _full(error) or _withheld(function.__name__, error)
        else:
            seconds = time.perf_counter() - started
            log_line(f"{seconds:6.2f} s  {words}", replace(begun, done=1))
            record_event("step", step=name, about=begun.about, seconds=round(seconds, 3))
            return result
        # Raised here, outside the except block: an exception raised inside would carry the
        # original, and its values, as its context.
        raise public

    return wrapper


def _of_prefect(error: Exception) -> bool:
    """Whether an error is one with which Prefect stops a run."""
    exceptions = sys.modules.get("prefect.exceptions")
    return exceptions is not None and isinstance(error, exceptions.PrefectException)


def _lost(error: Exception) -> ServerError | None:
    """The error that a step raises if it could not reach the Prefect server; None for other errors."""
    httpx = sys.modules.get("httpx")
    if httpx is None or not isinstance(error, httpx.HTTPError):
        return None
    return ServerError(f"the Prefect server does not answer ({type(error).__name__})")


def _full(error: Exception) -> DPReleaseError | None:
    """The error that a step raises if a disk is full (which Arrow only says in its message); else
    None."""
    full = isinstance(error, OSError) and (
        error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    )
    if not full:
        return None
    return DPReleaseError(
        "a disk is full: make room, and run again with the same release id, which charges nothing twice"
    )


def _progress_listener(begun: StepProgress, every: float = 10.0) -> Callable[[str, int, int], None]:
    """A listener to ``dpcore.progress`` that shows a line at most once every ``every`` seconds."""
    last = time.monotonic()

    def listen(what: str, done: int, of: int) -> None:
        nonlocal last
        level = logging.DEBUG
        if time.monotonic() - last >= every:
            last, level = time.monotonic(), logging.INFO
        words = f"{begun.words} ({what}: {done} of {of})"
        log_line(f"         {words}", replace(begun, words=words, done=done, of=of), level)

    return listen


def _withheld(step_name: str, error: Exception) -> DPReleaseError:
    """Write the trace to a private file; returns an error that names it."""
    kind = type(error).__name__
    try:
        folder = private_folder(home() / "failures")
        path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{step_name}.txt"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        # A value in the trace may be text that UTF-8 cannot encode.
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(traceback.format_exception(error))
        where = f"the trace, which may hold private values, is in {path}"
    except OSError:
        where = "the trace could not be written"
    return DPReleaseError(f"the step {step_name} failed with {kind}; {where}")
