"""The harness of peers: its survey, the scripts of others, and errors of cells that come back."""

import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.scale.peers import __main__ as harness
from benchmarks.scale.peers import environment, survey

OTHERS = [peer for peer in harness.PEERS if peer != "published"]


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
