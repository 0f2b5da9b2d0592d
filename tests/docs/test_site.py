"""The site builds without a warning, and neither the build nor a page contacts other hosts."""

import re
from pathlib import Path

import pytest

from docs.reference import PAGES
from tests.conftest import ROOT
from tests.tasks.browser import PHONE


@pytest.mark.slow
def test_every_page_is_built_and_can_be_reached(site):
    sources = {p.relative_to(ROOT / "docs" / "pages") for p in (ROOT / "docs/pages").rglob("*.md")}
    expected = {str(p.with_suffix(".html")) for p in sources | {Path(name) for name in PAGES}}
    assert all((site / page).is_file() for page in expected)
    home = (site / "index.html").read_text()
    linked = set(re.findall(r'<a href="([^"#:]+\.html)" class="md-nav__link', home))
    assert expected - {"index.html"} <= linked


@pytest.mark.slow
def test_a_browser_asks_for_local_files_only_and_every_page_fits(site, chromium):
    asked: list[str] = []
    tab = chromium.new_page(viewport={"width": PHONE, "height": 800})
    tab.on("request", lambda request: asked.append(request.url))
    for page in sorted(site.rglob("*.html")):
        tab.goto(page.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE, page
    tab.close()
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked), set(asked)
