"""Hooks of MkDocs: add the pages that are made from the code, and order the sections."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from docs.kinds import OF_PAPERS, illustrated, style
from docs.notebooks import NOTEBOOKS, notebook_page
from docs.reference import PAGES
from schemas.plan import load_plan
from tasks.explain.trade_off import trade_off_picture

SECTIONS = {
    "Notebooks": "Learn",
    "Kinds": "What to publish",
    "How to": "Do",
    "Explanation": "Understand",
    "Reference": "Look up",
}
"""The title of each folder's section, by what a reader wants, in their order."""
DEMO = Path(__file__).parent.parent / "deployments" / "plans" / "fair.yaml"


def on_files(files: Any, config: Any) -> Any:
    """Add the reference, the notebooks, and the picture of what the demo's budget buys."""
    made = {path: page() for path, page in PAGES.items()}
    made |= {f"notebooks/{p.stem}.md": notebook_page(p) for p in NOTEBOOKS.glob("*.ipynb")}
    made["images/accuracy.svg"] = trade_off_picture(load_plan(DEMO))
    made |= {f"kinds/{page.name}": page.read_text() for page in OF_PAPERS.glob("*/*.md")}
    made["kinds/figures.css"] = style()
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page of a kind of release gets the pictures of its example."""
    path = Path(page.file.src_uri)
    return illustrated(markdown, path.stem) if path.parent.name == "kinds" else markdown


def on_nav(nav: Any, **_: Any) -> Any:
    """The front page, then the sections; the tutorial opens the first of them."""
    pages = [item for item in nav.items if item.is_page]
    sections = {item.title: item for item in nav.items if item.is_section}
    for folder, title in SECTIONS.items():
        sections[folder].title = title
    home, tutorial = sorted(pages, key=lambda page: not page.is_homepage)
    tutorial.parent = sections["Notebooks"]
    tutorial.parent.children.insert(0, tutorial)
    nav.items[:] = [home, *(sections[folder] for folder in SECTIONS)]
    return nav
