"""The lines of README publish the demo from a data frame."""

import re

import pytest

from tests.bare import leave_out_audits
from tests.conftest import ROOT, short_fits


@pytest.mark.slow
def test_five_lines_lead_from_a_data_frame_to_a_bundle(tmp_path, monkeypatch, capsys):
    pytest.importorskip("statsmodels")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = block.replace("deployments/", f"{ROOT}/deployments/")
    monkeypatch.chdir(tmp_path)
    leave_out_audits(monkeypatch.setattr)
    with short_fits():
        exec(lines, {})
    number, _, error = capsys.readouterr().out.strip().partition(" ± ")
    assert 2500 < float(number.replace(",", "")) < 2900
    assert 0 < float(error) < 100
    (bundle,) = (tmp_path / "published" / "fair-1978").iterdir()
    assert bundle.name.startswith("fair-")


def test_the_citation_names_the_version():
    import yaml

    import dprelease

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == dprelease.__version__
