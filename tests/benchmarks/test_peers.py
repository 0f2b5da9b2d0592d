"""The harness of peers: its survey, our own line, and what is said of a peer that cannot run."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.scale.peers import __main__ as harness
from benchmarks.scale.peers import environment, protocol, survey
from benchmarks.scale.peers.environment import NotInstalled
from benchmarks.scale.peers.plot import curves

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


@pytest.mark.slow
def test_a_peer_that_cannot_be_installed_is_reported(capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "PINS", tmp_path)
    absent = [sys.executable, "-m", "pip", "install", "--no-index", "absent==1"]
    really = environment.run
    monkeypatch.setattr(environment, "run", lambda _: really(absent))
    (tmp_path / "opendp.txt").write_text("absent==1\n")
    assert harness.main(["--rows", "100", "--repeats", "1", "--peer", "opendp", "published"]) == 1
    first, missing, second, published = lines(capfd.readouterr().out)
    assert missing.keys() == {"peer", "rows", "failed"}
    assert missing["peer"] == "opendp"
    assert "not installed" in missing["failed"]
    assert "absent==1" in missing["failed"]
    assert first.keys() == second.keys() == KEYS
    assert published["peer"] == "published"


@pytest.mark.slow
def test_an_environment_is_made_once_and_anew_when_its_pins_change(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "PINS", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    pins, cache = tmp_path / "peer.txt", tmp_path / "cache"
    pins.write_text("")
    python = environment.interpreter("peer", cache)
    mark = cache / "peer" / "mark"
    mark.touch()
    assert environment.interpreter("peer", cache) == python
    assert mark.exists()
    pins.write_text("absent==1\n")
    with pytest.raises(NotInstalled, match="absent==1"):
        environment.interpreter("peer", cache)
    assert not mark.exists()
    with pytest.raises(NotInstalled):  # what is half made is not taken for whole
        environment.interpreter("peer", cache)


def test_a_peer_that_fails_or_takes_too_long_says_so(tmp_path):
    described = tmp_path / "survey.json"
    survey.make_survey(tmp_path, 100)[0].write(described)
    with pytest.raises(harness.Failed, match="No module named"):
        harness.run(Path(sys.executable), "absent", described, 1, 60)
    with pytest.raises(harness.Failed, match=r"not done after 0\.01 seconds"):
        harness.run(Path(sys.executable), "ours", described, 1, 0.01)


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


def test_processor_time_and_memory_are_also_those_of_started_processes():
    work = (
        "import time\nheld = bytearray(200_000_000)\nwhile time.process_time() < 0.5: pass\n"
        "print(flush=True)\ninput()"
    )
    memory = protocol.peak_bytes()
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        _, _, living = protocol.timed(process.stdout.readline)
        assert protocol.peak_bytes() > memory + 200_000_000
        _, _, ended = protocol.timed(lambda: process.communicate(b"\n"))
    assert living > 0.4
    assert ended < 0.4  # what was counted while it lived is not counted again


def test_the_picture_shows_the_median_of_each_size_and_nothing_of_what_failed():
    lines = [
        {"peer": "a", "rows": 100, "cpu_seconds": 3.0},
        {"peer": "a", "rows": 10, "cpu_seconds": 1.0},
        {"peer": "a", "rows": 10, "cpu_seconds": 2.0},
        {"peer": "b", "rows": 10, "failed": "not installed"},
    ]
    assert curves(lines, "cpu_seconds") == {"a": [(10, 1.5), (100, 3.0)]}
