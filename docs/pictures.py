"""Take the pictures of the documentation: `make pictures`.

    python -m docs.pictures build/demo/published/fair-1978/demo docs/pages/images

The report of the published demo, the evaluation of its records, a series in the catalogue, and the forms
of a server with a made-up survey, as they are today. ``pictured.txt`` says of which templates they are:
a test fails once these have changed.
Needs Chromium; set CHROMIUM to its path if it is not on the PATH.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import yaml
from playwright.sync_api import sync_playwright
from statsmodels.datasets import fair

import dprelease
from docs.pictured import PICTURED, pages_today
from dpcore.accounting.budget import Budget
from tasks.ledger import Ledger
from tests.flows.served import Served

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
CLINIC = ["north", "south", "west"]
SERIES, MONTHS = Path("deployments/series/events.yaml"), 8
PLAN = {
    "dprelease": 1,
    "dataset": "visits",
    "source": "visits.parquet",
    "rows": 5000,
    "privacy_unit": "row",
    "neighbours": "replace-one",
    "budget": {
        "granted": {"alpha": "20"},
        "requested": {"alpha": "1"},
    },
    "columns": {
        "clinic": {"type": "categorical", "categories": CLINIC, "label": "Clinic"},
        "age": {"type": "integer", "bounds": [0, 99], "label": "Age"},
        "visits": {"type": "integer", "bounds": [0, 20], "label": "Visits"},
    },
    "releases": [
        {"name": "by-clinic", "kind": "histogram", "columns": ["clinic"]},
        {"name": "age", "kind": "mean", "column": "age", "by": ["clinic"]},
    ],
    "publication": {"title": "Visits to clinics", "approval": True},
    "operation": {
        "requests": {"releases": ["by-clinic"], "columns": ["clinic", "age"], "part": "1/10"}
    },
}


def main(bundle: Path, images: Path) -> None:
    """Take all of them."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    images.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        report(browser, (bundle / "report.html").resolve().as_uri(), images)
        evaluation(browser, bundle, Path(folder) / "evaluation.html", images)
        series(browser, Path(folder) / "series", images)
        served = prepared(Path(folder))
        served.start()
        try:
            forms(browser, served, images)
        finally:
            served.stop()
            browser.close()
    PICTURED.write_text(f"{pages_today()}\n")


def report(browser: Any, address: str, images: Path) -> None:
    """The findings and a model of the demo."""
    for name, height, anchor in (
        ("report-wide", 1150, "findings"),
        ("report-analysis", 640, "analysis-who-has-affairs"),
    ):
        tab = browser.new_page(viewport={"width": 1100, "height": height})
        tab.goto(f"{address}#{anchor}")
        tab.screenshot(path=images / f"{name}.png")


def evaluation(browser: Any, bundle: Path, page: Path, images: Path) -> None:
    """The demo's records beside the rows of its survey, which are public."""
    (records,) = (bundle / "microdata").glob("*[!t].parquet")
    rows = page.with_name("fair.parquet")
    fair.load_pandas().data.to_parquet(rows)
    compared = ["evaluate", str(records), str(rows), "--not-for-release", "--page", str(page)]
    subprocess.run([sys.executable, "-m", "flows.cli", *compared], check=True, stdout=sys.stderr)
    tab = browser.new_page(viewport={"width": 1100, "height": 1300})
    tab.goto(page.as_uri())
    tab.screenshot(path=images / "evaluation.png")


def series(browser: Any, folder: Path, images: Path) -> None:
    """Some months of a made-up series, in the catalogue."""
    document = yaml.safe_load(SERIES.read_text())
    del document["operation"]  # its schedule would name the months
    random, plan = np.random.default_rng(3), dprelease.load_plan(document)
    months, regions, kinds = (plan.columns[name].categories for name in ("month", "region", "kind"))
    size = 20_000
    folder.mkdir()
    calls = pd.DataFrame(
        {
            "person": np.arange(size),
            "month": random.choice(months, size),
            "region": random.choice(regions, size),
            "kind": random.choice(kinds, size, p=[0.3, 0.1, 0.5, 0.1]),
        }
    )
    for month in months[:MONTHS]:
        dprelease.release(
            plan,
            calls[calls["month"] <= month],
            release_id=month,
            ledger=folder / "ledger.sqlite",
            out=folder,
            progress=False,
        )
    catalogue = [sys.executable, "-m", "flows.cli", "catalogue", str(folder)]
    subprocess.run(catalogue, check=True, stdout=sys.stderr)
    tab = browser.new_page(viewport={"width": 1100, "height": 1300})
    tab.goto((folder / "index.html").as_uri())
    row = tab.locator(".figures").first.bounding_box()
    height = tab.locator("figure").first.bounding_box()["height"]
    tab.screenshot(path=images / "series.png", clip=row | {"height": height})


def prepared(folder: Path) -> Served:
    """A folder with a made-up survey, its plan and its grant."""
    (folder / "plans").mkdir()
    (folder / "plans" / "visits.yaml").write_text(yaml.safe_dump(PLAN, sort_keys=False))
    random = np.random.default_rng(1)
    survey = pd.DataFrame(
        {
            "clinic": random.choice(CLINIC, 5000, p=[0.5, 0.3, 0.2]),
            "age": random.integers(0, 100, 5000),
            "visits": np.minimum(random.poisson(3, 5000), 20),
        }
    )
    survey.to_parquet(folder / "plans" / "visits.parquet")
    granted = Budget.of(20), "the board", "for a year"
    Ledger(f"sqlite:///{folder}/ledger.sqlite").grant("visits", *granted)
    return Served(folder)


def forms(browser: Any, served: Served, images: Path) -> None:
    """A request, what an officer sees of it, and the form of the decision."""
    tab = browser.new_page(viewport={"width": 1200, "height": 1000})
    served.log_in(tab)
    form = served.deployment("ad hoc release", "ad-hoc-release")

    def take(name: str, path: str, wait: str, height: int = 1000) -> None:
        tab.set_viewport_size({"width": 1200, "height": height})
        tab.goto(f"{served.address}{path}")
        tab.get_by_text(wait).first.wait_for()
        tab.wait_for_load_state("networkidle")
        tab.screenshot(path=images / f"{name}.png")

    take("ad-hoc-form", f"/deployments/deployment/{form['id']}/run", "requester", 1500)
    run = served.ask("visits")["id"]
    served.settled(run)
    preview = served.artifact(run, "approval-preview")["id"]
    take("approval-preview", f"/artifacts/artifact/{preview}", "by-clinic", 1400)
    take("approve", f"/runs/flow-run/{run}", "Suspended", 900)
    tab.get_by_role("button", name="Resume").click()
    tab.get_by_text("Read the artifact").first.wait_for()
    tab.screenshot(path=images / "approve.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
