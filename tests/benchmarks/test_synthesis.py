"""The synthesis benchmark measures what it says, on tables coded as they should be."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.synthesis.tables import TABLES
from tests.conftest import ROOT

SHAPES = {
    "nltcs": (21574, 16),
    "adult_coded": (48842, 14),
    "acs_nist_ma2019": (7634, 23),
    "made_up_wide": (100_000, 3),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_record_has_a_cell(name: str, test_data: Path):
    domain, codes = TABLES[name](test_data)
    assert codes.shape == SHAPES[name]
    assert np.all((codes >= 0) & (codes < domain.shape))


@pytest.mark.slow
def test_one_line_a_draw_with_the_promised_keys_and_accuracy(test_data: Path):
    command = [sys.executable, "-m", "benchmarks.synthesis", "--dataset", "nltcs", "--draws", "1"]
    printed = subprocess.run(
        [*command, "--relation", "add-remove"],
        cwd=ROOT,
        env={"DPRELEASE_TEST_DATA": str(test_data), "PATH": ""},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (line,) = printed.splitlines()
    found = json.loads(line)
    assert found["relation"] == "add-remove"
    assert found["tv1"] < 0.002
    assert found["tv2"] < 0.0030
    assert found["tv3"] < 0.0065
    assert found["tv3_max"] >= found["tv3"]
    assert found["cpu_seconds"] < 60
    assert 50 < found["peak_mb"] < 2048
    assert {"seconds", "tv1_max", "tv2_max", "alpha", "beta", "draw"} <= set(found)
