"""No page that the server offers lets a browser ask another host."""

import re
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import prefect
import pytest

from flows.operation.pages import start
from tests.flows.served import PASSWORD, Served, own_environment

pytestmark = pytest.mark.slow

SECTIONS = (  # what Prefect's router nests: each page, of both UIs, is below one of these
    "artifacts", "automations", "blocks", "concurrency-limits", "dashboard", "deployments",
    "events", "flow-runs", "flows", "notifications", "runs", "settings", "variables", "work-pools",
    "work-queues", "artifacts/key/bundle", "automations/create", "blocks/catalog",
    "blocks/catalog/secret", "blocks/catalog/secret/create", "work-pools/create", "nowhere",
    "work-pools/work-pool/dprelease", "work-pools/work-pool/dprelease/edit",
    "work-pools/work-pool/dprelease/queue/default",
)  # fmt: skip
API_PAGES = ("docs", "redoc", "api/docs", "api/redoc")  # would load scripts from a CDN


def pages(served: Served) -> list[str]:
    """The addresses of the sections, and of the pages of what the server holds."""
    found = [*SECTIONS, *API_PAGES]
    for kind, views in (
        ("deployment", ("", "/run", "/edit", "/duplicate")),
        ("flow", ("",)),
        ("flow_run", ("",)),
        ("artifact", ("",)),
        ("automation", ("", "/edit")),
        ("work_queue", ("",)),
    ):
        name = kind.replace("_", "-")
        section = "runs" if kind == "flow_run" else f"{name}s"
        for item in served.api("POST", f"/{kind}s/filter")[:1]:
            found += [f"{section}/{name}/{item['id']}{view}" for view in views]
    return found


def test_the_walk_knows_every_section_of_the_router():
    text = "".join(
        path.read_text() for path in Path(prefect.__ui_static_path__).glob("assets/index-*.js")
    )
    top = set(re.findall(r"path:`/?([a-z-]+)`", text)) - {"login", "create", "catalog"}
    assert "dashboard" in top
    moved = {"collections", "concurrency-limits-v2"}  # older names of sections
    assert top <= set(SECTIONS) | moved


def test_no_page_asks_another_host(served: Served, chromium: Any):
    context = chromium.new_context(viewport={"width": 1200, "height": 1000})
    asked: list[str] = []

    def refuse(route: Any) -> None:  # a request that the page's policy stops never comes here
        asked.append(route.request.url)
        route.abort()

    own = f"127.0.0.1:{served.port}"
    context.route(lambda url: urlsplit(url).netloc not in {own, ""}, refuse)
    page = context.new_page()
    served.log_in(page)
    page.get_by_text("Flow Runs").first.wait_for()  # the dashboard, where people look for it
    login = b64encode(PASSWORD.encode()).decode()
    page.set_extra_http_headers({"Authorization": f"Basic {login}"})  # where no form asks for it
    for address in pages(served):
        page.goto(f"{served.address}/{address}", wait_until="load")
        page.wait_for_load_state("networkidle")
    context.close()
    assert not asked, sorted({urlsplit(url).netloc for url in asked})


def test_the_second_ui_is_not_served(served: Served):
    login = tuple(PASSWORD.split(":"))
    settings = httpx.get(f"{served.address}/ui-settings", auth=login).json()
    assert settings["available_uis"] == ["v1"]
    page = httpx.get(
        f"{served.address}/v2/", headers={"Accept": "text/html"}, follow_redirects=True
    )
    assert "ui-v2" not in page.text
    assert "/v2/assets" not in page.text


SINGLE_RUN = """
import os, httpx
from flows.operation.embedded import prefect_api
from prefect.settings import PREFECT_API_URL
with prefect_api():
    address = PREFECT_API_URL.value().removesuffix("/api")
    login = tuple(os.environ["PREFECT_API_AUTH_STRING"].split(":"))
    assert httpx.get(f"{address}/api/health", auth=login).is_success
    print([httpx.get(f"{address}/{page}", auth=login).status_code for page in PAGES])
"""


def test_neither_a_server_nor_a_single_run_has_pages_of_the_api(served: Served, tmp_path):
    login = tuple(PASSWORD.split(":"))
    missing = [httpx.codes.NOT_FOUND.value] * len(API_PAGES)
    found = [httpx.get(f"{served.address}/{page}", auth=login).status_code for page in API_PAGES]
    assert found == missing
    said = subprocess.check_output(
        [sys.executable, "-c", f"PAGES = {API_PAGES}{SINGLE_RUN}"],
        env=own_environment(tmp_path),
        text=True,
    )
    assert said.split("\n")[-2] == str(missing)


@pytest.mark.parametrize("option", ["--workers=2", "-b"])
def test_a_server_in_other_processes_is_refused(option):
    with pytest.raises(SystemExit, match=option):
        start(["start", option])
