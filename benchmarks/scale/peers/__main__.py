"""The same private two-way table by dprelease and by other libraries, in the same run.

    nice python -m benchmarks.scale.peers --rows 1000000 --cache build/peers

makes a survey of two text columns (192 x 8 categories, all public), and releases its counts at epsilon
1, where a unit has one record.  Each runs in its own process and environment, one at a time, and
dprelease again before each peer, because the load of the machine varies.  One JSON line for each:

    start_seconds   imports, and the engine, before anything of the survey is read
    load_seconds    from the Parquet file to where queries read it (dprelease: the private copy, typed)
    query_seconds   from there to the noisy counts: the median of ``queries`` releases
                    (dprelease: tally, exact statistic, privacy line)
    cpu_seconds     processor seconds of such a query
    peak_mb         peak memory of the process and those that it started
    neighbours      which tables are neighbours: add-remove (one record more or less) or replace-one
    cells           cells that were returned
    error           mean absolute error of these; bias: their mean error
    ratio           query_seconds over those of dprelease just before; cpu_ratio: of cpu_seconds;
                    cold_ratio: of start, load and one query together

The peer ``published`` is dprelease with its other published columns: whole counts that add up,
standard errors and intervals.  A peer that cannot be installed or fails has ``failed`` instead, and
the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.peers.environment import NotInstalled, interpreter
from benchmarks.scale.peers.survey import make_survey
from dpcore.arrays import Integers

PEERS = ("published", "opendp", "tumult", "smartnoise", "pipelinedp", "diffprivlib")
ROOT = Path(__file__).parents[3]


def main(arguments: list[str] | None = None) -> int:
    """Run dprelease and every peer; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="default: a million")
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=PEERS, help="default: all")
    parser.add_argument("--repeats", type=int, default=5, help="queries of each; default: 5")
    parser.add_argument(
        "--seconds", type=float, default=1800, help="most for a peer; default: 1800"
    )
    parser.add_argument("--cache", type=Path, help="keeps the environments; default: made anew")
    options = parser.parse_args(arguments)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        survey, exact = make_survey(Path(folder), options.rows)
        described = Path(folder) / "survey.json"
        survey.write(described)
        cache = (options.cache or Path(folder)).absolute()
        limits = (described, options.repeats, options.seconds)
        for peer in options.peer:
            ours = run(Path(sys.executable), "ours", *limits)
            print_line("dprelease", with_errors(ours, exact))
            try:
                theirs = run(interpreter(peer, cache), peer, *limits)
            except (NotInstalled, Failed) as reason:
                print_line(peer, {"rows": options.rows, "failed": str(reason)})
                failed = 1
            else:
                print_line(peer, with_errors(theirs, exact) | ratios(theirs, ours))
    return failed


class Failed(Exception):
    """The process of a library ended without its line, and why."""


def run(python: Path, peer: str, survey: Path, repeats: int, seconds: float) -> dict[str, Any]:
    """The line of one process, which has ended afterwards with all that it started."""
    with subprocess.Popen(
        [str(python), "-m", f"{__package__}.{peer}", str(survey), str(repeats)],
        cwd=survey.parent,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            printed, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"not done after {seconds:g} seconds") from None
    if process.returncode:
        raise Failed((said.splitlines() or [f"ended with {process.returncode}"])[-1])
    line: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return line


def with_errors(line: dict[str, Any], exact: Integers) -> dict[str, Any]:
    """The line with the errors of its counts instead of the counts."""
    errors = np.array(line.pop("counts"), dtype=float) - exact
    errors = errors[~np.isnan(errors)]
    return line | {
        "cells": len(errors),
        "error": round(float(np.abs(errors).mean()), 3),
        "bias": round(float(errors.mean()), 3),
    }


def ratios(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, float]:
    """Theirs over ours."""

    def cold(line: dict[str, Any]) -> float:
        return float(line["start_seconds"] + line["load_seconds"] + line["query_seconds"])

    return {
        "ratio": round(theirs["query_seconds"] / ours["query_seconds"], 2),
        "cpu_ratio": round(theirs["cpu_seconds"] / ours["cpu_seconds"], 2),
        "cold_ratio": round(cold(theirs) / cold(ours), 2),
    }


def print_line(peer: str, line: dict[str, Any]) -> None:
    print(json.dumps({"peer": peer} | line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
