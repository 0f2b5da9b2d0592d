"""Hooks of MkDocs: add the pages that are made from the code, and order the sections."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from docs.notebooks import NOTEBOOKS, notebook_page
from docs.reference import PAGES
from schemas.plan import load_plan
from tasks.explain.trade_off import trade_off_picture

ORDER = ("How to", "Explanation", "Notebooks", "Reference")
DEMO = Path(__file__).parent.parent / "deployments" / "plans" / "fair.yaml"


def on_files(files: Any, config: Any) -> Any:
    """Add the reference, the notebooks, and the picture of what the demo's budget buys."""
    made = {path: page() for path, page in PAGES.items()}
    made |= {f"notebooks/{p.stem}.md": notebook_page(p) for p in NOTEBOOKS.glob("*.ipynb")}
    made["images/accuracy.svg"] = trade_off_picture(load_plan(DEMO))
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_nav(nav: Any, **_: Any) -> Any:
    """Pages first, then sections: from doing to looking up."""
    nav.items.sort(key=lambda item: ORDER.index(item.title) + 1 if item.is_section else 0)
    return nav
