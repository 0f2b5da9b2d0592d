"""The harness of peers: its survey, our own line, and what is said of a peer that cannot run."""

import json
import math
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.scale.peers import __main__ as harness
from benchmarks.scale.peers import environment, survey

KEYS = {
    "peer", "version", "neighbours", "rows", "start_seconds", "load_seconds", "query_seconds",
    "cpu_seconds", "queries", "peak_mb", "cells", "error", "bias",
}  # fmt: skip
OTHERS = [peer for peer in harness.PEERS if peer != "published"]


def lines(printed: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in printed.splitlines()]


def test_the_survey_is_the_same_at_every_run_and_its_counts_are_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(survey, "PART", 1000)
    (tmp_path / "again").mkdir()
    made, counts = survey.make_survey(tmp_path, 2500)
    again, same = survey.make_survey(tmp_path / "again", 2500)
    table = pq.read_table(made.source)
    assert table.equals(pq.read_table(again.source))
    assert (counts == same).all()
    records = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert counts.tolist() == [records.count(cell) for cell in made.cells]
    assert counts.sum() == len(records) == 2500
    assert len(set(counts.tolist())) > 5


@pytest.mark.slow
def test_our_own_lines_have_every_key_and_the_error_of_epsilon_one(capfd):
    assert harness.main(["--rows", "3000", "--repeats", "2", "--peer", "published"]) == 0
    ours, published = lines(capfd.readouterr().out)
    assert ours.keys() == KEYS
    assert published.keys() == KEYS | {"ratio", "cpu_ratio", "cold_ratio"}
    for line in (ours, published):
        assert (line["rows"], line["cells"], line["queries"]) == (3000, 1536, 2)
        # 1 / sinh(epsilon / sensitivity), within six standard errors of a mean over the cells.
        sensitivity = {"replace-one": 2, "add-remove": 1}[line["neighbours"]]
        expected = 1 / math.sinh(1 / sensitivity)
        assert line["error"] == pytest.approx(expected, rel=6 * 1.1 / math.sqrt(1536))
    assert published["ratio"] == pytest.approx(
        published["query_seconds"] / ours["query_seconds"], abs=0.006
    )


@pytest.mark.parametrize("peer", OTHERS)
def test_every_peer_has_a_script_and_pins_that_name_no_address(peer):
    pins = (environment.PINS / f"{peer}.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in pins)
    script = (environment.PINS / f"{peer}.py").read_text()
    (package,) = re.findall(r'report\("([\w.-]+)", "add-remove"', script)
    assert package in {line.partition("==")[0] for line in pins}


def test_cells_that_do_not_come_back_are_no_errors():
    line = {"counts": [3.0, None, 6.5], "rows": 10}
    found = harness.with_errors(line, np.array([2, 100, 7]))
    assert found == {"rows": 10, "cells": 2, "error": 0.75, "bias": 0.25}
