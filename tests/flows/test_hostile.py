"""Texts that try to be markup, links or scripts, in every field that a person fills in.

Whatever shows them, Prefect's pages, the report or the catalogue, shows them as they were typed: no
element, script or request on any page is theirs, and no page asks another host.
"""

import json
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import prefect
import pytest

from tests.flows.hostile import COLUMN, HOSTILE, IN_FILE_NAMES
from tests.flows.served import PASSWORD, Served, own_environment
from tests.flows.test_foreign import API_PAGES

pytestmark = pytest.mark.slow

SECTIONS = (  # what Prefect's router nests: each page, of both UIs, is below one of these
    "artifacts", "automations", "blocks", "concurrency-limits", "dashboard", "deployments",
    "events", "flow-runs", "flows", "notifications", "runs", "settings", "variables", "work-pools",
    "work-queues", "artifacts/key/bundle", "automations/create", "blocks/catalog",
    "blocks/catalog/secret", "blocks/catalog/secret/create", "work-pools/create", "nowhere",
    "work-pools/work-pool/dprelease", "work-pools/work-pool/dprelease/edit",
    "work-pools/work-pool/dprelease/queue/default",
)  # fmt: skip

FOREIGN = """() => {
    const LOADS = /^(src|srcset|href|xlink:href|action|formaction|data|poster|style)$/;
    const found = [];
    const look = root => {
        for (const node of root.querySelectorAll('*')) {
            if (node.shadowRoot) look(node.shadowRoot);
            for (const {name, value} of node.attributes) {
                const away = /javascript:|\\/\\/[^/]*evil/i.test(value);
                const plain = value === node.textContent.trim();  // Prefect makes links of logs
                if (LOADS.test(name) && away && !plain) found.push(node.outerHTML);
                if (/^on/.test(name)) found.push(node.outerHTML);
            }
        }
    };
    look(document);
    if (window.evil) found.push('a script ran: ' + window.evil);
    return found.map(html => html.slice(0, 300));
}"""

TEXT = """() => {
    const parts = [];
    const walk = node => {
        if (node.nodeType === Node.TEXT_NODE) parts.push(node.data);
        else if (!/^(SCRIPT|STYLE)$/.test(node.nodeName)) node.childNodes.forEach(walk);
    };
    walk(document.body);
    return parts.join('');
}"""

RUNS_TABS = ("Logs", "Task Runs", "Artifacts", "Details", "Parameters")


@pytest.fixture
def tab(served: Served, chromium: Any) -> Iterator[Any]:
    """A page that is logged in; nothing may be asked of another host, and no dialog may open."""
    context = chromium.new_context(viewport={"width": 1100, "height": 700})
    asked, opened = list[str](), list[str]()
    own = f"127.0.0.1:{served.port}"

    # Not by a route: with one, the browser has no cache, and every page loads all scripts again.
    def ask(request: Any) -> None:
        if urlsplit(request.url).netloc not in {own, ""}:
            asked.append(request.url)

    def fail(request: Any) -> None:
        if request.failure == "csp":  # the page's policy stopped it: nothing was sent
            asked.remove(request.url)

    context.on("request", ask)
    context.on("requestfailed", fail)
    tab = context.new_page()
    tab.on("dialog", lambda dialog: (opened.append(dialog.message), dialog.dismiss()))
    served.log_in(tab)
    yield tab
    context.close()
    assert not opened
    assert not asked


AT_REST = """() => new Promise(resolve => {
    let quiet = setTimeout(resolve, 300);
    new MutationObserver(() => { clearTimeout(quiet); quiet = setTimeout(resolve, 300); })
        .observe(document, {subtree: true, childList: true});
    setTimeout(resolve, 2000);
})"""
"""Until nothing was added to the page for a while, as what loads late is; some pages never rest."""


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
        items = served.api("POST", f"/{kind}s/filter")
        theirs = [item for item in items if item.get("name") in ("hostile", "ad-hoc-release")]
        for item in theirs or items[:1]:
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


def require_harmless(tab: Any, *shown: str) -> None:
    """Nothing on the page is of a hostile text, whose every word is there as it was typed."""
    for text in shown:
        tab.get_by_text(text).first.wait_for()
    tab.evaluate(AT_REST)
    found = tab.evaluate(FOREIGN)
    assert not found, f"{tab.url}: {found}"


def require_typed(tab: Any) -> None:
    """Every hostile word is inside the text that was typed."""
    seen = " ".join(tab.evaluate(TEXT).split())
    for text in (*HOSTILE, COLUMN, IN_FILE_NAMES):
        seen = seen.replace(text, "").replace(json.dumps(text)[1:-1], "")
    left = seen.find("evil")
    assert left < 0, f"{tab.url}: {seen[max(left - 99, 0) : left + 99]}"


def see(tab: Any, served: Served, path: str, *shown: str) -> None:
    tab.goto(f"{served.address}{path}")
    require_harmless(tab, *shown)
    require_typed(tab)


def see_run(tab: Any, served: Served, run: str) -> None:
    """A run's page and its tabs, its tasks and its artifacts."""
    see(tab, served, f"/runs/flow-run/{run}")
    for name in RUNS_TABS:
        tab.get_by_text(name, exact=True).first.click()
        require_harmless(tab)
        require_typed(tab)
    of_run = {"flow_run_id": {"any_": [run]}}
    for artifact in served.api("POST", "/artifacts/filter", artifacts=of_run):
        see(tab, served, f"/artifacts/artifact/{artifact['id']}")


def test_nothing_of_a_release_is_theirs_from_the_form_to_the_catalogue(tab, served):
    run = served.ask("hostile", title=HOSTILE[12], requester=HOSTILE[2])["id"]
    waiting = served.settled(run)
    assert waiting["state_name"] == "Suspended", waiting["state"]["message"]
    see(tab, served, f"/runs/flow-run/{run}")
    tab.get_by_role("button", name="Resume").click()
    require_harmless(tab, "Read the artifact")
    require_typed(tab)
    review = {"decision": "approve", "name": HOSTILE[4], "reason": HOSTILE[0]}
    served.answer(run, **review)
    ended = served.settled(run)
    assert ended["state_type"] == "COMPLETED", ended["state"]["message"]
    see_run(tab, served, run)
    catalogue = subprocess.run(
        [sys.executable, "-m", "flows.cli", "catalogue", str(served.out)],
        env=own_environment(served.folder / "home"),
        capture_output=True,
        text=True,
        check=True,
    )
    report = next(served.out.glob("hostile/*/report.html"))
    for page in (catalogue.stdout.strip(), report):
        tab.goto(Path(page).resolve().as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        require_harmless(tab, HOSTILE[12])


def test_nothing_of_an_audit_or_a_refusal_is_theirs(tab, served):
    form = served.deployment("audit", "audit-a-plan")
    asked = {"plan": "hostile", "quick": True}
    with served.resting():
        path = f"/deployments/{form['id']}/create_flow_run"
        audit = served.api("POST", path, parameters=asked)["id"]
        refused = [
            served.ask(**{"plan": "hostile", "requester": HOSTILE[5]} | choice)["id"]
            for choice in (
                {"plan": HOSTILE[1]},
                {"releases": [f"hostile: {HOSTILE[0]}", HOSTILE[3]]},
            )
        ]
        served.carry_out([audit, *refused])
    for run, end in ((audit, "COMPLETED"), *((run, "FAILED") for run in refused)):
        assert served.settled(run)["state_type"] == end
        see_run(tab, served, run)


def test_nothing_on_any_other_page_is_theirs_and_none_asks_another_host(tab, served):
    tab.set_extra_http_headers({"Authorization": f"Basic {b64encode(PASSWORD.encode()).decode()}"})
    for address in pages(served):  # some of them have no form for the password
        see(tab, served, f"/{address}")
