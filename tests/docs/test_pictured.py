"""Pictures in the documentation are of the pages of today."""

import re

from docs.pictured import PICTURED, ROOT, pages_today

PAGES = ROOT / "docs" / "pages"
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
BY_OTHERS = {"river", "density-map"}
"""One is a drawing; the command of the other is below it."""


def test_pictures_were_taken_of_the_templates_of_today():
    assert PICTURED.read_text().strip() == pages_today(), "run: make pictures"


def test_every_picture_is_shown_and_a_command_makes_it():
    shown = {
        (page.parent / path).resolve()
        for page in [ROOT / "README.md", *PAGES.rglob("*.md")]
        for path in IMAGE.findall(page.read_text())
    }
    stored = {p for p in PAGES.rglob("*.*") if p.suffix in (".png", ".svg")}
    assert shown == stored
    taken = (ROOT / "docs" / "pictures.py").read_text()
    names = {p.stem for p in stored if not p.stem.startswith("papers-")} - BY_OTHERS
    assert all(f'"{name}' in taken for name in names)
