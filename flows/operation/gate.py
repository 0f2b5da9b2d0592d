"""Which requests to a Prefect server need only its login, and which need the agency's key.

Prefect has one login for everybody, and the login opens the whole API, even work pools and deployments,
which name the program that a worker runs.  So a server that has the agency's key allows requests without
it only to read, to request a release with a deployment's form, and to cancel, retry or resume a run.
``flows.operation.bodies`` lists the fields of such requests.

    DPRELEASE_AGENCY_KEY             the key, where the server or `dprelease deploy` is started
    PREFECT_CLIENT_CUSTOM_HEADERS    {"Dprelease-Agency": "KEY"}, where a worker is started

``dprelease serve`` makes a key, gives it to its own worker, and commands with the same home find it.
"""

import hmac
import json
import os
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flows.operation.bodies import RULES
from tasks.workplace.home import home

KEY = "DPRELEASE_AGENCY_KEY"
HEADERS = "PREFECT_CLIENT_CUSTOM_HEADERS"
NAME = "Dprelease-Agency"
MOST_BYTES = 2**20
LOOPBACK = ("127.0.0.1", "localhost", "::1")
REFUSAL = "this needs the agency's key"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_ID = "[0-9a-f-]{36}"
_POSTED = re.compile(
    r"/(flows|flow_runs|task_runs|deployments|logs|artifacts|artifacts/latest|events|automations|variables"
    r"|saved_searches|concurrency_limits|v2/concurrency_limits|work_pools|work_pools/[^/]+/(queues|workers)"
    rf"|work_queues|task_workers|block_types|block_schemas|flow_runs/{_ID}/input)"
    r"/(filter|count|paginate|history|lateness|count-by/[a-z]+)"
    r"|/ui/[a-z_]+/[a-z-]+"
    rf"|/deployments/{_ID}/create_flow_run|/flow_runs/{_ID}/(resume|set_state)"
)
"""Paths that need no key with POST, after the API's base path: queries first."""

_FOLLOWED = ("/events/out", "/logs/out")
"""Websockets that a page listens to."""


class Gate:
    """An ASGI application that passes on allowed requests, and answers others with 403."""

    def __init__(self, app: App, key: str, base: str = "/api") -> None:
        self._app, self._key, self._base = app, key.encode(), base.rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._has_key(scope):
            await self._app(scope, receive, send)
        elif self._is_open(scope):
            rule = RULES.get(scope["path"].rstrip("/").rpartition("/")[2])
            if rule is None or scope["type"] == "websocket":
                await self._app(scope, receive, send)
            elif (body := await _checked(receive, rule)) is not None:
                await self._app(_with_body(scope, body), _once(body, receive), send)
            else:
                await _refuse(send)
        elif scope["type"] == "websocket":
            await receive()  # ASGI allows an answer only after the request to connect
            await send({"type": "websocket.close", "code": 1008, "reason": REFUSAL})
        else:
            await _refuse(send)

    def _is_open(self, scope: Scope) -> bool:
        path = scope["path"].removeprefix(self._base)
        if scope["type"] == "websocket":
            return path in _FOLLOWED
        if scope["method"] == "POST":
            return _POSTED.fullmatch(path.rstrip("/")) is not None
        # Blocks may contain secrets, which a query can read.
        return scope["method"] in ("GET", "HEAD", "OPTIONS") and "block_documents" not in path

    def _has_key(self, scope: Scope) -> bool:
        given = [v for name, v in scope["headers"] if name.lower() == NAME.lower().encode()]
        return len(given) == 1 and hmac.compare_digest(given[0], self._key)


async def _refuse(send: Send) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    body = json.dumps({"detail": REFUSAL}).encode()
    await send({"type": "http.response.body", "body": body})


async def _checked(receive: Receive, rule: Callable[[Any], bool]) -> bytes | None:
    """The request's body, serialised again; None if it is not allowed."""
    read, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        read += message.get("body", b"")
        more = message.get("more_body", False)
        if len(read) > MOST_BYTES:
            return None
    try:
        document = json.loads(read or b"{}")
        # Serialised again, so that the server reads exactly what was checked.
        return json.dumps(document, allow_nan=False).encode() if rule(document) else None
    except (ValueError, RecursionError):
        return None


def _with_body(scope: Scope, body: bytes) -> Scope:
    """The request's scope with the length of this body in its headers."""
    of_body = (b"content-length", b"content-type", b"content-encoding", b"transfer-encoding")
    kept = [(name, value) for name, value in scope["headers"] if name.lower() not in of_body]
    said = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return {**scope, "headers": kept + said}


def _once(body: bytes, receive: Receive) -> Receive:
    """A function that returns the body once, and then further messages, such as a disconnection."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def received() -> Any:
        return next(messages, None) or await receive()

    return received


def guard(key: str, base: str) -> None:
    """Check the requests to every application that uvicorn runs in this process from now on."""
    import uvicorn

    run = uvicorn.run

    def run_guarded(app: Any, **options: Any) -> None:
        run(Gate(app, key, base), **options)

    uvicorn.run = run_guarded


def headers_with(key: str) -> str:
    """The value of PREFECT_CLIENT_CUSTOM_HEADERS that shows the key, with the operator's own headers."""
    given = os.environ.get(HEADERS)
    return json.dumps((json.loads(given) if given else {}) | {NAME: key})


def make_key(folder: Path) -> str:
    """The key of the server, from this private folder; made at the first call."""
    file = folder / "agency-key"
    if not file.exists() or not file.read_text():  # the process that wrote it may have been killed
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as made:
            made.write(secrets.token_urlsafe(32))
    return file.read_text()


def trouble(error: Exception) -> str:
    """The reason why a request to the server failed, in words that follow "the server"."""
    from httpx import HTTPStatusError, codes

    if isinstance(error, HTTPStatusError) and REFUSAL in error.response.text:
        return (
            f"says that {REFUSAL}: set {KEY} to the server's key or, on the machine of `dprelease"
            " serve`, DPRELEASE_HOME to its home"
        )
    if isinstance(error, HTTPStatusError) and error.response.status_code == codes.UNAUTHORIZED:
        return "asks for a login: set PREFECT_API_AUTH_STRING=user:password"
    return (
        f"does not answer correctly ({type(error).__name__}): start it, or correct or unset"
        " PREFECT_API_URL"
    )


def show_key() -> None:
    """Send the environment's key with requests or, to this machine, the key of this home's server.

    Call it before Prefect reads its settings.
    """
    if key := os.environ.get(KEY):
        os.environ[HEADERS] = headers_with(key)
    elif urlsplit(os.environ.get("PREFECT_API_URL", "")).hostname in LOOPBACK:
        with suppress(OSError):
            os.environ[HEADERS] = headers_with((home() / "server" / "agency-key").read_text())
