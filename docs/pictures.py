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
    """Take the report on a wide screen, on a phone and in dark colours."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    address = (bundle / "report.html").resolve().as_uri()
    images.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        for name, width, height, scheme, anchor in (
            ("report-wide", 1100, 1150, "light", "release-all-pairs"),
            ("report-phone", 360, 760, "light", "release-marriage-and-affairs"),
            ("report-analysis", 1100, 640, "light", "analysis-who-has-affairs"),
            ("report-dark", 1100, 900, "dark", "release-affairs-classifier"),
        ):
            window = {"width": width, "height": height}
            tab = browser.new_context(viewport=window, color_scheme=scheme).new_page()
            tab.goto(f"{address}#{anchor}")
            tab.screenshot(path=images / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
