"""The Prefect UI as people see it: the ad hoc form, the run, its artifacts, approval, the bundle.

Pictures for the documentation are taken on the way where DPRELEASE_PICTURES names a folder.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tasks.bundle.verify import read_manifest, verify_budget
from tests.flows.served import Served

pytestmark = pytest.mark.slow


@pytest.fixture
def page(served: Served, chromium: Any) -> Iterator[Any]:
    """A page of a headless Chromium that is logged in."""
    context = chromium.new_context(viewport={"width": 1200, "height": 1000})
    page = context.new_page()
    asked = set()
    page.on("request", lambda request: asked.add(request.url.split("/")[2]))
    served.log_in(page)
    yield page
    context.close()
    assert asked == {f"127.0.0.1:{served.port}"}  # nobody else is told


def field(page, name: str):
    label = page.locator(".schema-form-property__label", has_text=name)
    return page.locator(".schema-form-property", has=label).last


def choose(page, name: str, *values: str) -> None:
    field(page, name).locator(".p-select-button__control").press("Space")
    for value in values:
        page.get_by_role("option", name=value, exact=True).click()
    page.keyboard.press("Escape")


def write(page, name: str, text: str) -> None:
    field(page, name).locator("textarea, input").first.fill(text)


def submit(page, request: str) -> None:
    """Press Submit; again where the server's database was locked by another writer, as people do."""
    for _ in range(5):
        with page.expect_response(f"**/{request}") as answer:
            page.get_by_role("button", name="Submit").click()
        if answer.value.status != httpx.codes.SERVICE_UNAVAILABLE:
            break
    assert answer.value.ok, answer.value.text()


def picture(page, name: str) -> None:
    if folder := os.environ.get("DPRELEASE_PICTURES"):
        from PIL import Image

        path = Path(folder) / f"{name}.png"
        page.screenshot(path=path, animations="disabled")
        Image.open(path).convert("RGB").quantize(160).save(path, optimize=True)


def fill_the_form(page, served: Served, alpha: str) -> None:
    form = served.deployment("ad hoc release", "ad-hoc-release")
    page.goto(f"{served.address}/deployments/deployment/{form['id']}/run")
    choose(page, "Plan", "health")
    choose(page, "Releases", "health: people", "health: pairs")
    write(page, "Alpha", alpha)
    write(page, "Title", "Health by sex and region")
    write(page, "Requester", "B. Analyst, Ministry of Health")


def open_artifact(page, served: Served, run: str, key: str) -> None:
    page.goto(f"{served.address}/artifacts/artifact/{served.artifact(run, key)['id']}")


def runs_of(served: Served) -> set[str]:
    only = {"name": {"any_": ["ad hoc release"]}}
    return {run["id"] for run in served.api("POST", "/flow_runs/filter", flows=only)}


def test_from_the_form_to_the_bundle(page, served):
    before = runs_of(served)
    fill_the_form(page, served, alpha="1")
    picture(page, "ad-hoc-form")
    submit(page, "create_flow_run")
    (run,) = runs_of(served) - before
    page.goto(f"{served.address}/runs/flow-run/{run}")
    page.get_by_role("button", name="Resume").wait_for()
    assert page.get_by_text("ad hoc release: health, for B. Analyst").first.is_visible()
    page.reload()  # the graph at rest
    page.get_by_text("16 Task runs").first.wait_for()
    picture(page, "run")
    for key, says in (
        ("cost-and-accuracy", "Requested by B. Analyst, Ministry of Health"),
        ("approval-preview", "To be approved: Health by sex and region"),
    ):
        open_artifact(page, served, run, key)
        page.get_by_text(says).first.wait_for()
        picture(page, key)
    page.goto(f"{served.address}/runs/flow-run/{run}")
    page.get_by_role("button", name="Resume").click()
    choose(page, "Decision", "approve")
    write(page, "Name", "C. Officer")
    write(page, "Reason", "every cell is large")
    picture(page, "approve")
    submit(page, "resume")
    page.get_by_text("Completed", exact=True).first.wait_for()
    open_artifact(page, served, run, "bundle")
    page.get_by_text("/health/health-ad-hoc-").first.wait_for()
    (bundle,) = [p for p in (served.out / "health").iterdir() if p.name.endswith(run[-4:])]
    manifest = read_manifest(bundle)
    assert [record.name for record in manifest.releases] == ["people", "pairs"]
    assert manifest.plan["publication"]["requester"] == "B. Analyst, Ministry of Health"
    assert (manifest.approval.who, manifest.approval.why) == ("C. Officer", "every cell is large")
    assert verify_budget(manifest, served.ledger).alpha == 1
