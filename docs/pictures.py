"""Take the pictures of the documentation from the report of the published demo: `make pictures`.

    python docs/pictures.py build/demo/published/fair-1978/demo docs/pages/images

Needs Chromium; set CHROMIUM to its path if it is not on the PATH.
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main(bundle: Path, images: Path) -> None:
    """Take the tables and a model of the report."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    address = (bundle / "report.html").resolve().as_uri()
    images.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        for name, height, anchor in (
            ("report-wide", 1150, "release-all-pairs"),
            ("report-analysis", 640, "analysis-who-has-affairs"),
        ):
            tab = browser.new_page(viewport={"width": 1100, "height": height})
            tab.goto(f"{address}#{anchor}")
            tab.screenshot(path=images / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
