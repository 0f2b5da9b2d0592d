"""The self-assessment names evidence that a bundle has."""

import json
import re

import pytest
import yaml

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "pages" / "explanation" / "nist-800-226.md"
READ = {".json": json.loads, ".yaml": yaml.safe_load}


@pytest.mark.slow
def test_each_piece_of_evidence_is_in_a_bundle(demo):
    cells = [row.split("|")[-2] for row in PAGE.read_text().splitlines() if row.startswith("| ")]
    named = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 20
    for name in named:
        file, _, place = name.partition(": ")
        assert (demo / file).exists(), name
        if place:
            node = READ[(demo / file).suffix]((demo / file).read_text())
            for key in place.split("."):
                node = node[int(key) if isinstance(node, list) else key]
            assert node not in (None, "", [], {}), name
