"""The self-assessment names evidence that a bundle has."""

import json
import re

import pytest
import yaml

import dprelease
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "pages" / "explanation" / "nist-800-226.md"
READ = {".json": json.loads, ".yaml": yaml.safe_load}


@pytest.mark.slow
def test_each_piece_of_evidence_is_in_a_bundle(tmp_path):
    plan = ROOT / "deployments" / "plans" / "fair.yaml"
    bundle = dprelease.release(plan, ledger=tmp_path / "ledger.sqlite", out=tmp_path).path
    cells = [row.split("|")[-2] for row in PAGE.read_text().splitlines() if row.startswith("| ")]
    named = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 20
    for name in named:
        file, _, place = name.partition(": ")
        assert (bundle / file).exists(), name
        if place:
            node = READ[(bundle / file).suffix]((bundle / file).read_text())
            for key in place.split("."):
                node = node[int(key) if isinstance(node, list) else key]
            assert node not in (None, "", [], {}), name
