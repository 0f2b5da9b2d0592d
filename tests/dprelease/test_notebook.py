"""In a notebook a release shows a bar and tables, and says nothing else."""

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

from tests.bare import small_plan
from tests.conftest import ROOT
from tests.waiting import SECONDS

CELLS = (
    "import dprelease\nbundle = dprelease.release('plan.yaml', release_id='r1')",
    "bundle",
    "bundle.total('people', lambda t: t['age_from'] >= 42)",
    "import sys; 'prefect' in sys.modules",
)


@pytest.mark.slow
def test_a_notebook_shows_a_bar_tables_and_estimates(tmp_path, monkeypatch):
    small_plan(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    kernel = nbclient.NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    kernel.execute()
    bar, tables, total, prefect = (cell.outputs for cell in notebook.cells)
    assert [output.output_type for output in bar] == ["display_data"]
    assert "<td>microdata/everybody</td>" in tables[0].data["text/html"]
    assert " ± " in total[0].data["text/plain"]
    assert prefect[0].data["text/plain"] == "False"
