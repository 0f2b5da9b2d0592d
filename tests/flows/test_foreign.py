"""Pages that would ask another host are not served."""

import subprocess
import sys

import httpx
import pytest

from flows.operation.pages import start
from tests.flows.served import PASSWORD, Served, own_environment

pytestmark = pytest.mark.slow

API_PAGES = ("docs", "redoc", "api/docs", "api/redoc")  # would load scripts from a CDN


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


def test_neither_a_server_nor_a_single_run_has_pages_of_the_api(
    served: Served, tmp_path, put_database
):
    put_database(tmp_path / "prefect")
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
