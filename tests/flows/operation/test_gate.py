"""Without the agency's key a request reads, or asks for a release, and nothing else."""

import asyncio
import importlib
import json
import os
import pkgutil
import re
from uuid import uuid4

import httpx
import pytest

from flows.operation.gate import (
    HEADERS,
    KEY,
    NAME,
    REFUSAL,
    Gate,
    headers_with,
    make_key,
    show_key,
    trouble,
)

SECRET = "the agency's own"
ASKS = {
    "/deployments/{id:uuid}/create_flow_run",
    "/flow_runs/{id:uuid}/resume",
    "/flow_runs/{id:uuid}/set_state",
}
QUESTION = re.compile(r"/ui/.*|.*/(filter|count|paginate|history|lateness|count-by/\{countable\})")


def answer(path: str, method: str = "GET", kind: str = "http", **headers: str) -> list:
    """What is sent back to a request; the gated application says only that it was reached."""
    sent = []

    async def application(scope, receive, send):
        sent.append("reached")

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind,
        "path": path,
        "method": method,
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
    }
    asyncio.run(Gate(application, SECRET)(scope, receive, send))
    return sent


def reached(*request: str, **headers: str) -> bool:
    return answer(*request, **headers) == ["reached"]


def routes() -> set[tuple[str, str]]:
    """The method and path of every route of Prefect's API; a websocket's method is ``WS``."""
    import prefect.server.api
    from fastapi import APIRouter

    found = set()
    for module in pkgutil.walk_packages(prefect.server.api.__path__, "prefect.server.api."):
        for each in vars(importlib.import_module(module.name)).values():
            if isinstance(each, APIRouter):
                for route in each.routes:
                    methods = getattr(route, "methods", None) or {"WS"}
                    found |= {(method, route.path) for method in methods}
    return found


def test_what_is_open_of_all_that_prefect_offers():
    """A route that a later Prefect adds is closed until somebody has looked at it."""
    identity, opened = str(uuid4()), set()
    offered = routes()
    assert len(offered) > 150
    for method, path in offered:
        if method in ("GET", "HEAD", "OPTIONS"):
            continue
        filled = "/api" + re.sub(r"\{[^}]*\}", identity, path.replace("{countable}", "day"))
        kind = "websocket" if method == "WS" else "http"
        if reached(filled, method, kind):
            opened.add((method, path))
    assert {(m, p) for m, p in opened if m == "WS"} == {("WS", "/events/out"), ("WS", "/logs/out")}
    posted = {path for method, path in opened if method != "WS"}
    assert {method for method, _ in opened} == {"POST", "WS"}
    assert posted >= ASKS
    assert all(QUESTION.fullmatch(path) for path in posted - ASKS)
    assert not any("block_documents" in path for path in posted)


@pytest.mark.parametrize(
    "request_of",
    [
        ("/api/work_pools/dprelease", "PATCH"),
        ("/api/work_pools/", "POST"),
        ("/api/deployments/", "POST"),
        (f"/api/deployments/{uuid4()}", "PATCH"),
        (f"/api/deployments/{uuid4()}/create_flow_run/bulk", "POST"),
        ("/api/flow_runs/", "POST"),
        ("/api/flow_runs/x/../../work_pools/filter", "POST"),
        ("/api/block_documents/filter", "POST"),
        ("/api/block_types/slug/secret/block_documents", "GET"),
        ("/work_pools/filter/api", "POST"),
        ("/api/events/in", "GET", "websocket"),
        ("/api/admin/storage", "PUT"),
    ],
)
def test_what_is_closed_needs_the_key_and_the_whole_key(request_of):
    for headers in (
        {},
        {NAME: ""},
        {NAME: SECRET[:-1]},
        {NAME: SECRET + "x"},
        {"Authorization": SECRET},
    ):
        sent = answer(*request_of, **headers)
        assert "reached" not in sent
        if request_of[2:] == ("websocket",):
            assert sent == [{"type": "websocket.close", "code": 1008, "reason": REFUSAL}]
        else:
            assert sent[0]["status"] == 403
            assert json.loads(sent[1]["body"]) == {"detail": REFUSAL}
    assert reached(*request_of, **{NAME: SECRET})


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    key = make_key(tmp_path)
    assert len(key) > 40
    assert make_key(tmp_path) == key
    assert (tmp_path / "agency-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:4200/api", True),
        ("http://localhost:4200/api", True),
        ("http://prefect.example.org/api", False),
    ],
)
def test_a_command_shows_the_key_of_its_home_to_this_machine_alone(
    own_home, monkeypatch, address, shown
):
    monkeypatch.setenv(HEADERS, "")  # so that what is set below is undone
    monkeypatch.delenv(HEADERS)
    monkeypatch.setenv("PREFECT_API_URL", address)
    show_key()
    assert HEADERS not in os.environ  # this home serves nothing
    (own_home / "server").mkdir(parents=True, exist_ok=True)
    key = make_key(own_home / "server")
    show_key()
    assert os.environ.get(HEADERS) == (headers_with(key) if shown else None)


def test_a_command_elsewhere_shows_the_key_of_its_environment(monkeypatch):
    monkeypatch.setenv(HEADERS, '{"Proxy-Token": "t"}')
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example.org/api")
    monkeypatch.setenv(KEY, "k")
    show_key()
    assert json.loads(os.environ[HEADERS]) == {"Proxy-Token": "t", NAME: "k"}


def test_an_operators_own_headers_are_kept(monkeypatch):
    monkeypatch.setenv(HEADERS, '{"Proxy-Token": "t"}')
    assert json.loads(headers_with("k")) == {"Proxy-Token": "t", NAME: "k"}


def test_who_lacks_the_key_is_told_how_to_show_it():
    request = httpx.Request("POST", "http://127.0.0.1/api/flows/")
    refused = httpx.Response(403, json={"detail": REFUSAL}, request=request)
    said = trouble(httpx.HTTPStatusError("403", request=request, response=refused))
    assert KEY in said
    assert "does not answer" in trouble(httpx.ConnectError("no"))
