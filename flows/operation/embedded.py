"""Runs Prefect's API inside this process, on loopback, so that nobody has to start a server.

Prefect itself would start a second process and wait for it; serving the same API from a thread is
quicker.  Its database is in dprelease's home, closed to other users, and the API needs a password
that is valid for this process alone.  If an API is configured (PREFECT_API_URL), it is used and
nothing is started.
"""

import atexit
import contextvars
import functools
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from httpx import HTTPError
from prefect import Flow

from dpcore.errors import DPReleaseError, ServerError
from flows import end_quietly
from flows.operation.gate import trouble
from flows.operation.pages import offer_no_api_pages
from tasks.workplace.home import home, locked, private_folder
from tasks.workplace.places import FLOW_RUN
from tasks.workplace.room import require_room_at_home
from tasks.workplace.step import log_line

P = ParamSpec("P")
R = TypeVar("R")

STARTUP_SECONDS = 120
LOST_SECONDS = 60

_OUTCOMES: list[Any] = []
"""The result or error of the flow that this process runs, if it has ended."""

if FLOW_RUN in os.environ:  # a worker started this process for one run, and logs it
    atexit.register(end_quietly)

_QUIET = {
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    # A release uses no blocks, and reading all libraries' blocks takes a quarter of the API's start.
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
    # Client and server are in one process, and no browser has the password.
    "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",
    "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": "false",
}


class EmbeddedFlow(Flow[P, R]):
    """A flow that starts the API when it is called. A worker calls ``fn`` instead.

    If a configured API stops answering during the run, the function's result or error still counts.
    """

    if not TYPE_CHECKING:  # type checkers see the signature of the decorated function

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            _OUTCOMES.clear()  # a process such as a notebook may run several flows
            lost: Exception
            try:
                with prefect_api():
                    return super().__call__(*args, **kwargs)
            except (HTTPError, RuntimeError) as error:
                silent = str(error).startswith("Failed to reach API")  # Prefect's own words
                if not silent and not isinstance(error, HTTPError):
                    raise
                lost = error
            if not _OUTCOMES:
                unreached = ServerError(
                    f"the Prefect server at PREFECT_API_URL {trouble(lost)}. Then repeat the command"
                    " with the same release id; nothing is charged twice"
                )
                unreached.before_the_run = True
                raise unreached
            (outcome,) = _OUTCOMES
            if isinstance(outcome, DPReleaseError):
                raise outcome
            log_line(
                f"the Prefect server does not answer ({type(lost).__name__}), and does not show that"
                " this run has ended"
            )
            return outcome


def flow(name: str, flow_run_name: str, **options: Any) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """Decorator for a flow that stores no result.  Prefect looks for a decorator of this name."""

    def decorate(function: Callable[P, R]) -> Flow[P, R]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                result = function(*args, **kwargs)
            except DPReleaseError as error:
                _OUTCOMES[:] = [error]
                raise
            _OUTCOMES[:] = [result]
            return result

        return EmbeddedFlow(
            wrapper,
            name=name,
            flow_run_name=flow_run_name,
            log_prints=False,
            persist_result=False,
            **options,
        )

    return decorate


@contextmanager
def prefect_api() -> Iterator[None]:
    """Provide the API that flows need: the configured one, or one in this process."""
    from prefect.context import refresh_global_settings_context
    from prefect.events.clients import NullEventsClient
    from prefect.events.worker import EventsWorker
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        temporary_settings,
    )

    if not os.environ.get("PREFECT_API_URL"):
        for variable, value in _QUIET.items():
            os.environ.setdefault(variable, value)
        os.environ.setdefault("PREFECT_HOME", str(private_folder(home() / "prefect")))
        password = f"dprelease:{secrets.token_hex(16)}"
        os.environ.setdefault("PREFECT_SERVER_API_AUTH_STRING", password)
        os.environ["PREFECT_API_AUTH_STRING"] = os.environ["PREFECT_SERVER_API_AUTH_STRING"]
        refresh_global_settings_context()  # Prefect read its settings when it was imported
    if PREFECT_API_URL.value():
        _bear_a_lost_server()
        if "PREFECT_LOGGING_LEVEL" not in os.environ:
            _leave_the_terminal_to_us()
        chosen = "PREFECT_CLIENT_MAX_RETRIES" in os.environ
        # By default each request waits a minute for a lost server; a release can do without it.
        with temporary_settings({} if chosen else {PREFECT_CLIENT_MAX_RETRIES: 2}):
            yield
        return
    if not (Path(os.environ["PREFECT_HOME"]) / "prefect.db").exists():
        log_line("first run in this home: creating Prefect's database")
    with ExitStack() as stack:
        with locked(home() / "prefect.lock"):  # two first runs must not both make it
            url = stack.enter_context(_served())
        # Nothing reads heartbeats and events if API and run share a process. The run would wait for
        # them, and report every event that it could not send before the API ended.
        own = {PREFECT_API_URL: url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
        stack.enter_context(temporary_settings(own))
        EventsWorker.set_client_override(NullEventsClient)
        stack.callback(EventsWorker.set_client_override, None)
        yield


@functools.cache
def _bear_a_lost_server() -> None:
    """After an event could not be sent to the server, silently drop all events for a minute.

    Otherwise Prefect tries to send each event for seven seconds, even while the process ends, and
    reports each failure. The run itself reports the lost server once.
    """
    from prefect.events.worker import EventsWorker

    logging.raiseExceptions = False  # Prefect's lines for the server obey it
    logging.getLogger("prefect._internal.concurrency").addFilter(lambda _: False)
    send, patience = EventsWorker._handle, 0.0

    async def send_or_drop(worker: EventsWorker, event: Any) -> None:
        nonlocal patience
        if time.monotonic() < patience:
            return
        try:
            await send(worker, event)
        except Exception:
            patience = time.monotonic() + LOST_SECONDS

    worker_type: Any = EventsWorker
    worker_type._handle = send_or_drop


def _leave_the_terminal_to_us() -> None:
    """Keep Prefect's log lines off the terminal; the server still gets them."""
    from prefect.logging.handlers import PrefectConsoleHandler

    for name in (None, "prefect"):
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, PrefectConsoleHandler):
                handler.setLevel(logging.CRITICAL)


@contextmanager
def _served() -> Iterator[str]:
    import uvicorn
    from prefect.server.api.server import create_app

    offer_no_api_pages()
    _forget_old_runs()
    # Port 0: any free one, because several runs may go on at once.  With lifespan "on" a failed start
    # ends the server; by default uvicorn would serve an API that has not started up.
    config = uvicorn.Config(
        create_app(ephemeral=True), host="127.0.0.1", port=0, log_level="critical", lifespan="on"
    )
    server = uvicorn.Server(config)
    run = contextvars.copy_context().run  # with the settings of this context
    # A daemon thread, so that the process can end even if the server hangs.
    thread = threading.Thread(target=run, args=(server.run,), name="prefect-api", daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + STARTUP_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                require_room_at_home()
                raise DPReleaseError(
                    "Prefect's API did not start; start one with `prefect server start` and set"
                    " PREFECT_API_URL"
                )
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/api"
    finally:
        for name in ("sqlalchemy", "aiosqlite", "asyncio"):  # they report every cancelled task
            logging.getLogger(name).setLevel(logging.CRITICAL)
        server.should_exit = True
        thread.join(timeout=10)


def _forget_old_runs() -> None:
    """Make an API that exists only for one run delete old runs too."""
    from prefect.server.services.db_vacuum import schedule_vacuum_tasks
    from prefect.server.services.perpetual_services import get_perpetual_services

    # Prefect deletes only in permanent servers; without one, the database would grow for ever.
    for service in get_perpetual_services():
        if service.function is schedule_vacuum_tasks:
            service.run_in_ephemeral = True
