"""The synthesis benchmark measures what it says, on tables coded as they should be."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.synthesis.second_look import coded, looked_at, table_of, theirs
from benchmarks.synthesis.tables import TABLES, decoded
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


def test_decoded_records_lie_in_their_cells(test_data: Path):
    domain, codes = TABLES["acs_nist_ma2019"](test_data)
    values = decoded(domain, codes, np.random.default_rng(0))
    assert np.array_equal(coded("acs_ma", values, test_data)[1], codes)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_that_are_read_as_somebody_elses_records_are_not_told_from_rows(
    suffix: str, test_data: Path, tmp_path: Path
):
    table, _ = table_of("nltcs", test_data)
    file = tmp_path / f"records.{suffix}"
    table.to_csv(file, index=False) if suffix == "csv" else table.to_parquet(file)
    found = looked_at("nltcs", table, theirs(file, table), test_data)
    assert found["tv2"] == found["tv3"] == 0
    assert found["auc"] < 0.51


def test_records_without_a_column_of_the_table_are_refused(test_data: Path, tmp_path: Path):
    table, _ = table_of("acs_ma", test_data)
    table.drop(columns="AGEP").to_csv(tmp_path / "records.csv", index=False)
    with pytest.raises(ValueError, match="has no column AGEP"):
        theirs(tmp_path / "records.csv", table)


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
