"""Without the agency's key a request reads, or asks for a release, and nothing else."""

import asyncio
import importlib
import json
import os
import pkgutil
import re

import httpx
import pytest

from flows.operation import pages
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

ID = "0192f3c4-5d6e-7f80-9a1b-2c3d4e5f6071"
SECRET = "the agency's own"
ASKS = {
    "/deployments/{id:uuid}/create_flow_run",
    "/flow_runs/{id:uuid}/resume",
    "/flow_runs/{id:uuid}/set_state",
}
QUESTION = re.compile(r"/ui/.*|.*/(filter|count|paginate|history|lateness|count-by/\{countable\})")


def answer(
    path: str, method: str = "GET", kind: str = "http", body: bytes = b"", **headers: str
) -> list:
    """What is sent back to a request; the gated application says that it was reached, and by what."""
    sent = []
    parts = [body[:10], body[10:]]

    async def application(scope, receive, send):
        sent.append("reached")
        if body:
            read, more = b"", True
            while more:
                message = await receive()
                read, more = read + message["body"], message.get("more_body", False)
            assert dict(scope["headers"]).get(b"content-length", b"") in (b"", b"%d" % len(read))
            sent.append(read)

    async def receive():
        if kind == "websocket":
            return {"type": "websocket.connect"}
        if not parts:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

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


def passed_on(path: str, document: object, **headers: str) -> object:
    """What the server reads of a document that is posted; None if it is refused."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    sent = answer(f"/api{path}", "POST", body=body, **headers)
    return json.loads(sent[1]) if sent[0] == "reached" else None


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
    opened = set()
    offered = routes()
    assert len(offered) > 150
    for method, path in offered:
        if method in ("GET", "HEAD", "OPTIONS"):
            continue
        filled = "/api" + re.sub(r"\{[^}]*\}", ID, path.replace("{countable}", "day"))
        kind = "websocket" if method == "WS" else "http"
        sent = answer(filled, method, kind)
        if "reached" in sent or path in ASKS:  # what these may say is another test's
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
        (f"/api/deployments/{ID}", "PATCH"),
        (f"/api/deployments/{ID}/create_flow_run/bulk", "POST"),
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


RUN, STATE = f"/deployments/{ID}/create_flow_run", f"/flow_runs/{ID}/set_state"
DETAILS = {"scheduled_time": "2026-12-01T06:00:00Z"}
NO_POLICY = {"retries": None, "retry_delay": None, "pause_keys": [], "resuming": False}
AGAIN = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": "again", "state_details": DETAILS}


@pytest.mark.parametrize(
    ("path", "document"),
    [
        (RUN, {}),
        (RUN, {"parameters": {"plan": "a", "means": ["x by y"]}, "tags": [], "job_variables": {}}),
        (RUN, {"state": AGAIN, "name": "mine", "idempotency_key": "k", "work_queue_name": None}),
        (RUN, {"enforce_parameter_schema": False, "empirical_policy": NO_POLICY}),
        (STATE, {"state": AGAIN, "force": True}),
        (STATE, {"state": {"type": "CANCELLING", "data": None, "state_details": None}}),
        (f"/flow_runs/{ID}/resume", {"run_input": {"decision": "approve", "name": "A"}}),
        (f"/flow_runs/{ID}/resume", {"run_input": None}),
    ],
)
def test_people_say_what_the_pages_fill_in_for_them(path, document):
    assert passed_on(path, document) == document


@pytest.mark.parametrize(
    ("path", "document"),
    [
        (RUN, {"empirical_policy": {"pause_keys": ["approval"]}}),
        (RUN, {"empirical_policy": NO_POLICY | {"resuming": True}}),
        (RUN, {"work_queue_name": "mine"}),
        (RUN, {"job_variables": {"env": {"A": "b"}}}),
        (RUN, {"infrastructure_document_id": ID}),
        (RUN, {"something": "new"}),
        (RUN, {"state": {"type": "RUNNING"}}),
        (RUN, {"state": AGAIN | {"data": {"storage_key": "/etc/passwd"}}}),
        (RUN, {"parameters": {"plan": {"__prefect_kind": "jinja", "template": "{{ 1 }}"}}}),
        (RUN, {"parameters": {"means": [{"a": {"__prefect_kind": "workspace_variable"}}]}}),
        (RUN, []),
        (RUN, b"not JSON"),
        (RUN, b'{"parameters": {"alpha": NaN}}'),
        (RUN, b"[" * 100_000),
        (RUN, b'{"name": "' + b"x" * 2**20 + b'"}'),
        (STATE, {}),
        (STATE, {"state": "SCHEDULED"}),
        (STATE, {"state": {"type": "COMPLETED"}, "force": True}),
        (STATE, {"state": {"type": "PAUSED", "name": "Suspended"}}),
        (STATE, {"state": {"type": ["SCHEDULED"]}}),
        (STATE, {"state": AGAIN | {"data": {"serializer": {"type": "pickle"}}}}),
        (STATE, {"state": AGAIN | {"state_details": {"run_input_keyset": {"response": "x"}}}}),
        (STATE, {"state": AGAIN | {"state_details": [1]}}),
        (STATE, b'{"state": {"type": "SCHEDULED"}, "state": {"type": "COMPLETED"}}'),
        (f"/flow_runs/{ID}/resume", {"run_input": {}, "keyset": "k"}),
    ],
)
def test_what_only_a_worker_says_needs_the_key(path, document):
    assert passed_on(path, document) is None
    if isinstance(document, dict):
        assert passed_on(path, document, **{NAME: SECRET}) == document


def test_the_server_reads_what_was_checked():
    """Of a field that is there twice, a parser may take the first or the last."""
    twice = b'{"state": {"type": "COMPLETED"}, "state": {"type": "SCHEDULED"}}'
    headers = {"Content-Length": "9", "Content-Encoding": "gzip"}
    assert passed_on(STATE, twice, **headers) == {"state": {"type": "SCHEDULED"}}
    (body,) = answer(f"/api{STATE}", "POST", body=twice, **headers)[1:]
    assert body.count(b"state") == 1


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    key = make_key(tmp_path)
    assert len(key) > 40
    assert make_key(tmp_path) == key
    assert (tmp_path / "agency-key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "agency-key").write_text("")  # as a process that is killed leaves it
    assert len(make_key(tmp_path)) > 40


def test_a_server_with_an_empty_key_does_not_start_open(monkeypatch):
    """An empty secret of a container, for example."""
    monkeypatch.setenv(KEY, "")
    with pytest.raises(SystemExit, match="is empty"):
        pages.start(["start"])


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


def test_who_lacks_the_key_is_told_how_to_show_it():
    request = httpx.Request("POST", "http://127.0.0.1/api/flows/")
    refused = httpx.Response(403, json={"detail": REFUSAL}, request=request)
    said = trouble(httpx.HTTPStatusError("403", request=request, response=refused))
    assert KEY in said
    assert "does not answer" in trouble(httpx.ConnectError("no"))
    refused = httpx.Response(401, json={"exception_message": "Unauthorized"}, request=request)
    said = trouble(httpx.HTTPStatusError("401", request=request, response=refused))
    assert "PREFECT_API_AUTH_STRING" in said
