"""Texts that try to be markup, links or scripts, in every field that a person fills in.

Whatever shows them, Prefect's pages, the report or the catalogue, shows them as they were typed: no
element, script or request on any page is theirs.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from schemas.plan import load_plan
from tasks.ledger import Ledger
from tests.bare import PLAN
from tests.flows.served import Served, own_environment

pytestmark = pytest.mark.slow

HOSTILE = [
    "![seen](http://evil0.example/x.png)",
    "<img src=http://evil1.example/x.png onerror=window.evil=1>",
    "<script>window.evil=2</script> </script> <b>evil2</b>",
    "[press](javascript:window.evil=3) <javascript:window.evil3=1>",
    "<a href=http://evil4.example>here</a> <svg onload=window.evil=4>",
    "http://evil5.example www.evil5.example me@evil5.example",
    "a | **evil6** | `evil6` | ~~evil6~~ | _evil6_ |",
    "``` # evil7 ---",
    "{{ evil8 }} ${evil8} {requester} %(evil8)s &lt;b&gt;",
    "long evil9 " + "x" * 150,
    "{% raw %} </textarea></title></style> evil10 <!-- ",
    "[evil11]: http://evil11.example [evil11][evil11] > - * +",
    ":smile: #1 @evil12 [ ] [x] $$evil12$$ \\(evil12\\)",
]
COLUMN = "www.evil20.example _evil20_"
IN_FILE_NAMES = "www-evil20-example-_evil20_"

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


def hostile_plan() -> dict[str, Any]:
    """The small plan of other tests, with a hostile text wherever it takes text."""
    document: dict[str, Any] = yaml.safe_load(PLAN)
    categories = ["F", *HOSTILE[:4]]
    document["dataset"] = "hostile"
    document["columns"] = {
        COLUMN: {
            "type": "categorical",
            "categories": categories,
            "labels": {category: HOSTILE[4] + f" {k}" for k, category in enumerate(categories)},
            "label": HOSTILE[5],
            "description": HOSTILE[6],
        },
        "age": {
            "type": "integer",
            "bounds": [18, 89],
            "unit": HOSTILE[1],
            "label": HOSTILE[7],
            "description": HOSTILE[0],
        },
    }
    people, sexes = document["releases"]
    document["releases"] = [
        people | {"columns": [COLUMN, "age"], "title": HOSTILE[1]},
        sexes | {"columns": [COLUMN, "age"], "title": HOSTILE[11]},
    ]
    document["synthesis"][0]["title"] = HOSTILE[2]
    document["publication"] = {
        "title": HOSTILE[0],
        "description": "\n\n".join(HOSTILE),
        "approval": True,
        **{
            field: HOSTILE[k]
            for k, field in enumerate(
                ("publisher", "contact", "licence", "citation", "region", "intended_use"), start=3
            )
        },
    }
    return document


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`dprelease serve` with the hostile plan alone."""
    folder = tmp_path_factory.mktemp("hostile")
    document = hostile_plan()
    (folder / "plans").mkdir()
    opened = [release["name"] for release in document["releases"]]
    document["operation"] = {"requests": {"releases": opened, "part": 1}}
    budget = load_plan(document | {"source": "survey.parquet"}).budget
    granted = budget.granted.budget, "the board", "a test", budget.composition
    Ledger(f"sqlite:///{folder}/ledger.sqlite").grant(document["dataset"], *granted)
    (folder / "plans" / "hostile.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    categories = document["columns"][COLUMN]["categories"]
    survey = pd.DataFrame({COLUMN: (categories * 8)[:40], "age": range(20, 60)})
    survey.to_parquet(folder / "plans" / "survey.parquet")
    served = Served(folder)
    served.start()
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture
def tab(served: Served, chromium: Any) -> Iterator[Any]:
    """A page that is logged in; nothing may be asked of another host, and no dialog may open."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1600})
    tab, asked, opened = context.new_page(), list[str](), list[str]()
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("dialog", lambda dialog: (opened.append(dialog.message), dialog.dismiss()))
    served.log_in(tab)
    yield tab
    context.close()
    assert not opened
    ours = (served.address, "data:", "blob:", f"ws://127.0.0.1:{served.port}", "file:")
    assert not [url for url in asked if not url.startswith(ours)]


AT_REST = """() => new Promise(resolve => {
    let quiet = setTimeout(resolve, 300);
    new MutationObserver(() => { clearTimeout(quiet); quiet = setTimeout(resolve, 300); })
        .observe(document, {subtree: true, childList: true});
    setTimeout(resolve, 2000);
})"""
"""Until nothing was added to the page for a while, as what loads late is; some pages never rest."""


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


def ask(served: Served, **choices: Any) -> dict[str, Any]:
    form = served.deployment("ad hoc release", "ad-hoc-release")
    asked = {"plan": "hostile", "releases": [], "alpha": "0.4", "title": "", **choices}
    return served.api(
        "POST",
        f"/deployments/{form['id']}/create_flow_run",
        parameters=asked,
        enforce_parameter_schema=False,
    )


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
    artifacts = served.api("POST", "/artifacts/filter", artifacts=of_run)
    for artifact in artifacts:
        see(tab, served, f"/artifacts/artifact/{artifact['id']}")
    for key in {artifact["key"] for artifact in artifacts}:
        see(tab, served, f"/artifacts/key/{key}")


def test_nothing_of_a_release_is_theirs_from_the_form_to_the_catalogue(tab, served):
    run = ask(served, title=HOSTILE[12], requester=HOSTILE[2])["id"]
    waiting = served.settled(run)
    assert waiting["state_name"] == "Suspended", waiting["state"]["message"]
    see_run(tab, served, run)
    see(tab, served, f"/runs/flow-run/{run}")
    tab.get_by_role("button", name="Resume").click()
    require_harmless(tab, "Read the artifact")
    require_typed(tab)
    review = {"decision": "approve", "name": HOSTILE[4], "reason": HOSTILE[0]}
    served.api("POST", f"/flow_runs/{run}/resume", run_input=review)
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
    for page in (catalogue.stdout.strip(), next(served.out.glob("*/*/report.html"))):
        tab.goto(Path(page).resolve().as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        require_harmless(tab, HOSTILE[12])


def test_nothing_of_an_audit_is_theirs(tab, served):
    form = served.deployment("audit", "audit-a-plan")
    asked = {"plan": "hostile", "quick": True}
    run = served.api("POST", f"/deployments/{form['id']}/create_flow_run", parameters=asked)["id"]
    assert served.settled(run)["state_type"] == "COMPLETED"
    see_run(tab, served, run)


def test_nothing_of_a_refusal_is_theirs(tab, served):
    for choice in ({"plan": HOSTILE[1]}, {"releases": [f"hostile: {HOSTILE[0]}", HOSTILE[3]]}):
        run = ask(served, **({"requester": HOSTILE[5]} | choice))["id"]
        assert served.settled(run)["state_type"] == "FAILED"
        see_run(tab, served, run)


def test_nothing_on_the_other_pages_is_theirs(tab, served):
    deployments = served.api("POST", "/deployments/filter")
    pages = [f"/deployments/deployment/{each['id']}" for each in deployments]
    form = served.deployment("ad hoc release", "ad-hoc-release")
    for path in (
        *("/dashboard", "/runs", "/flows", "/deployments", "/artifacts", "/variables", "/events"),
        *("/automations", "/work-pools", "/blocks", "/concurrency-limits"),
        *pages,
        f"/deployments/deployment/{form['id']}/run",
    ):
        see(tab, served, path)
