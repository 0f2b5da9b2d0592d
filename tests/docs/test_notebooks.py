"""Every notebook runs on a bundle, and its page shows the output."""

import os
import re

import pytest

nbformat = pytest.importorskip("nbformat")
errors = pytest.importorskip("nbclient.exceptions")

from docs.notebooks import NOTEBOOKS, notebook_page
from tests.chance import most_failures
from tests.conftest import ROOT
from tests.flows.served import BRIEFLY

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_shown_without_a_bundle(path, monkeypatch):
    monkeypatch.delenv("DPRELEASE_BUNDLE", raising=False)
    cells = nbformat.read(path, as_version=4).cells
    nbformat.validate(nbformat.read(path, as_version=4))
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code)
    page = notebook_page(path)
    assert all(cell.source in page for cell in cells)


@pytest.mark.slow
def test_a_notebook_runs_on_the_bundle_of_the_demo(demo, monkeypatch):
    monkeypatch.setenv("DPRELEASE_BUNDLE", str(demo))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([BRIEFLY, str(ROOT)]))
    page = notebook_page(NOTEBOOKS / "use-a-bundle.ipynb")
    assert page.count('<img alt="') == page.count("plt.show()") == 1
    assert "90% interval" in page.partition("```text")[2]
    assert "<td>20.0</td>" in page, "edges of bins are shown"


@pytest.mark.slow
def test_eight_questions_are_answered_and_their_intervals_hold_the_public_truth(demo, monkeypatch):
    monkeypatch.setenv("DPRELEASE_BUNDLE", str(demo))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([BRIEFLY, str(ROOT)]))
    page = notebook_page(NOTEBOOKS / "eight-questions.ipynb")
    held = re.findall("<td>(True|False)</td>", page)
    assert len(held) == 8
    assert held.count("False") <= most_failures(8, 0.05)
    assert "also: [[yrs_married, religious, affairs]]" in page
    assert page.count('<img alt="') == page.count("plt.show()") == 1


@pytest.mark.slow
def test_a_cell_that_fails_stops_the_site(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRELEASE_BUNDLE", str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    nbformat.write(notebook, tmp_path / "broken.ipynb")
    with pytest.raises(errors.CellExecutionError, match="ZeroDivisionError"):
        notebook_page(tmp_path / "broken.ipynb")
