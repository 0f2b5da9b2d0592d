"""Hooks of MkDocs: add the pages that are made from the code, and the pictures of examples."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from docs.kinds import OF_PAPERS, illustrated, style
from docs.notebooks import NOTEBOOKS, notebook_page
from docs.reference import PAGES


def on_files(files: Any, config: Any) -> Any:
    """Add the reference, the notebooks, and the pages of the papers."""
    made = {path: page() for path, page in PAGES.items()}
    made |= {f"notebooks/{p.stem}.md": notebook_page(p) for p in NOTEBOOKS.glob("*.ipynb")}
    made |= {f"kinds/{page.name}": page.read_text() for page in OF_PAPERS.glob("*/*.md")}
    made["kinds/figures.css"] = style()
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page of a kind of release gets the pictures of its example."""
    path = Path(page.file.src_uri)
    return illustrated(markdown, path.stem) if path.parent.name == "kinds" else markdown
