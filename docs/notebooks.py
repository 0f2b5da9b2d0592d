"""Notebooks as pages of the site: run on a bundle, then written as Markdown.

    DPRELEASE_BUNDLE=build/demo/published/fair-1978/demo     the bundle; without it nothing is run

The repository stores no output: a page shows what was computed when the site was built.
"""

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent / "pages" / "notebooks"
SECONDS = 600


def run(path: Path, bundle: Path) -> Any:
    """The notebook with its outputs; raises ``CellExecutionError`` where a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3")
    client.execute(env=os.environ | {"DPRELEASE_BUNDLE": str(bundle.resolve())})
    return notebook


def notebook_page(path: Path) -> str:
    """The Markdown of a notebook, run if there is a bundle."""
    bundle = os.environ.get("DPRELEASE_BUNDLE")
    notebook = run(path, Path(bundle)) if bundle else nbformat.read(path, as_version=4)
    return "\n\n".join(part for cell in notebook.cells for part in _parts(cell)) + "\n"


def _parts(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            alt = html.escape(cell.metadata["alt"])
            yield f'<img alt="{alt}" src="data:image/png;base64,{data["image/png"].strip()}">'
        elif "text/html" in data:
            yield _table(data["text/html"])
        else:
            yield f"```text\n{(output.get('text') or data['text/plain']).rstrip()}\n```"


def _table(text: str) -> str:
    """A data frame in the style of the site, without blank lines, which would end it in Markdown."""
    plain = re.sub(r'<style.*?</style>| border="1" class="dataframe"', "", text, flags=re.DOTALL)
    return "\n".join(line for line in plain.splitlines() if line.strip())
