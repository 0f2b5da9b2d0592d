"""Prefect without a server to start: its API runs inside this process, on loopback.

Prefect's own way of running without a server starts a second process and waits for it; serving the
same API from a thread is quicker.  Its database lies in dprelease's home, closed to other users, and
the API asks for a password that lives as long as the process.  Where an API is configured
(PREFECT_API_URL, or a Prefect profile), that one is used and nothing is started.
"""

import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dpcore.errors import DPReleaseError
from tasks.home import home, locked, private_folder
from tasks.progress import say

STARTUP_SECONDS = 120

_QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
}


@contextmanager
def prefect_api() -> Iterator[None]:
    """Make sure that flows can run: with the configured API, or with one of our own."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    # Before Prefect is imported: it reads its settings once.
    os.environ.setdefault("PREFECT_HOME", str(private_folder(home() / "prefect")))
    os.environ.setdefault("PREFECT_SERVER_API_AUTH_STRING", f"dprelease:{secrets.token_hex(16)}")
    os.environ["PREFECT_API_AUTH_STRING"] = os.environ["PREFECT_SERVER_API_AUTH_STRING"]
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        temporary_settings,
    )

    if PREFECT_API_URL.value():
        yield
        return
    if not (Path(os.environ["PREFECT_HOME"]) / "prefect.db").exists():
        say("first run here: making Prefect's database")
    with ExitStack() as stack:
        with locked(home() / "prefect.lock"):  # two first runs must not both make the database
            url = stack.enter_context(_served())
        # Nobody watches the heartbeats of a run in its own process, and each run waits for their end.
        own = {PREFECT_API_URL: url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
        stack.enter_context(temporary_settings(own))
        yield


@contextmanager
def _served() -> Iterator[str]:
    import uvicorn
    from prefect.server.api.server import create_app

    config = uvicorn.Config(
        create_app(ephemeral=True), host="127.0.0.1", port=0, log_level="critical", lifespan="on"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="prefect-api", daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + STARTUP_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise DPReleaseError(
                    "Prefect's API did not start; start one with `prefect server start` and set"
                    " PREFECT_API_URL"
                )
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/api"
    finally:
        for chatty in (
            "sqlalchemy",
            "aiosqlite",
            "asyncio",
        ):  # cancelled work is no news at the end
            logging.getLogger(chatty).setLevel(logging.CRITICAL)
        server.should_exit = True
        thread.join(timeout=10)
