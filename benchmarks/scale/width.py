"""Time and memory of synthetic records of many columns, from the survey's file to the bundle.

    python -m benchmarks.scale.width acs nhanes 30x8x20000 100x8x50000

runs ``dprelease explain`` and ``dprelease run`` on each survey, in processes of their own with a home
and a ledger of their own, and prints one JSON line for each:

    columns, cells  columns of the records, and the product of their cells as a power of ten
    tables          pair tables of the release
    explain         processor seconds of ``explain``, without what Python takes to start
    seconds, gib    processor seconds and peak memory of the run, start and audit included
    steps           wall seconds of its longest steps
    files, mib      of the bundle

    acs             all 24 columns of NIST's excerpt of the American Community Survey, with 2019's
                    people of Massachusetts, in DPRELEASE_TEST_DATA
    nhanes          31 made-up columns like those of a health examination: groups, doses, nulls
    CxKxN           C made-up columns of K categories each, N records of a few kinds of people
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.startup import ROOT
from benchmarks.synthesis.tables import ACS_CATEGORIES, ACS_EDGES, ACS_NULLABLE

Plan = dict[str, Any]
LABORATORY = ("pulse", "systolic", "diastolic", "cholesterol", "hdl", "glucose", "iron", "lead")
QUESTIONS = (
    "smoker",
    "drinker",
    "diabetic",
    "asthmatic",
    "insured",
    "veteran",
    "pregnant",
    "employed",
)


def main() -> None:
    """Measure every survey."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("surveys", nargs="+", help="acs, nhanes, or CxKxN")
    parser.add_argument("--alpha", default="1", help="default: 1")
    parser.add_argument("--plan", type=Path, metavar="FOLDER", help="only write plan and survey")
    options = parser.parse_args()
    for name in options.surveys:
        if options.plan:
            write(name, options.plan, options.alpha)
            continue
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(name, Path(folder), options.alpha)), flush=True)


def write(name: str, folder: Path, alpha: str) -> Path:
    """The survey and its plan as files; returns the plan's path."""
    frame, plan = made_up(name)
    synthesis = [{"name": "people", "from": "everyone", "rows": len(frame)}]
    return write_plan(name, frame, {**plan, "synthesis": synthesis}, folder, alpha)


def write_plan(name: str, frame: pd.DataFrame, plan: Plan, folder: Path, alpha: str) -> Path:
    """A survey and the plan for what is said of its columns and releases."""
    frame.to_parquet(folder / "survey.parquet")
    budget = {"alpha": alpha, "beta": "1e-6", "gamma": "0"}
    plan = {
        "dprelease": 1,
        "dataset": f"made-up-{name}",
        "source": "survey.parquet",
        "rows": len(frame),
        "privacy_unit": "row",
        "neighbours": "replace-one",
        "budget": {"granted": budget, "requested": budget},
        **plan,
        "publication": {
            "title": f"Records of {len(frame.columns)} columns",
            "description": "A measurement of time and memory.",
            "publisher": "dprelease",
        },
    }
    path = folder / "plan.yaml"
    path.write_text(json.dumps(plan), encoding="utf-8")  # JSON is YAML
    return path


def made_up(name: str) -> tuple[pd.DataFrame, Plan]:
    """The survey, and what its plan says of columns and releases."""
    if name == "acs":
        return acs()
    if name == "nhanes":
        return nhanes()
    columns, cells, rows = map(int, name.split("x"))
    codes = kinds_of_people(np.full(columns, cells), rows)
    frame = pd.DataFrame({f"q{i}": codes[:, i] for i in range(columns)})
    answers = {c: {"type": "categorical", "categories": list(range(cells))} for c in frame}
    return frame, {"columns": answers, "releases": [everyone(frame)]}


def everyone(frame: pd.DataFrame, **more: Any) -> Plan:
    """The release of all columns."""
    return {"name": "everyone", "kind": "microdata-margins", "columns": list(frame), **more}


def kinds_of_people(sizes: np.ndarray, rows: int) -> np.ndarray:
    """(rows, columns) codes: in each column a kind of people prefers some values."""
    generator = np.random.default_rng(0)
    kinds = generator.integers(0, 8, rows)
    codes = np.empty((rows, len(sizes)), dtype=np.int64)
    for i, size in enumerate(sizes):
        chances = generator.dirichlet(np.ones(size), 8).cumsum(axis=1)
        codes[:, i] = (generator.random(rows)[:, None] > chances[kinds, :-1]).sum(axis=1)
    return codes


def acs() -> tuple[pd.DataFrame, Plan]:
    """All columns; the 271 industries are numbers, and measured by groups."""
    folder = Path(os.environ["DPRELEASE_TEST_DATA"])
    frame = pd.read_parquet(folder / "acs_nist_ma2019" / "ma2019.parquet")
    columns: dict[str, Any] = {}
    bins: dict[str, Any] = {}
    for name in frame:
        if name in ACS_CATEGORIES:
            columns[name] = {"type": "categorical", "categories": list(ACS_CATEGORIES[name])}
            frame[name] = frame[name].astype(str)
        elif name in ACS_EDGES:
            bins[name] = list(ACS_EDGES[name])
            lower, upper = bins[name][0], bins[name][-1]
            kind, last = ("continuous", upper) if name == "DENSITY" else ("integer", upper - 1)
            columns[name] = {
                "type": kind,
                "bounds": [lower, last],
                "outside": "clamp",
                "nullable": name in ACS_NULLABLE,
            }
        else:
            frame[name] = pd.to_numeric(frame[name], errors="coerce").astype("Int64")
            columns[name] = {"type": "integer", "bounds": [0, 9999], "nullable": True}
            bins[name] = 500
    release = everyone(frame, bins=bins, compress={"keep": 24})
    return frame, {"columns": columns, "releases": [release]}


def nhanes() -> tuple[pd.DataFrame, Plan]:
    """5,000 people: who they are, what they were asked, what was measured; often nothing was."""
    generator, rows = np.random.default_rng(1), 5000
    age = generator.integers(0, 81, rows)
    frame = pd.DataFrame({"age": age})
    columns: dict[str, Any] = {"age": {"type": "integer", "bounds": [0, 80]}}
    bins: dict[str, Any] = {"age": [0, 6, 12, 20, 30, 40, 50, 60, 70, 81]}
    asked = {"sex": 2, "origin": 6, "schooling": 5, "marriage": 6, "region": 4, "language": 3}
    asked |= {"household": 7, "month": 12} | dict.fromkeys(QUESTIONS, 2)
    codes = kinds_of_people(np.array([*asked.values()]), rows)
    for i, (name, size) in enumerate(asked.items()):
        values = pd.Series(codes[:, i], dtype="Int64")
        frame[name] = values.mask(age < 20) if name in QUESTIONS else values
        columns[name] = {"type": "categorical", "categories": list(range(size))}
        columns[name]["nullable"] = name in QUESTIONS
    body = {
        "income": (0, 5),
        "height": (80, 200),
        "weight": (10, 180),
        "waist": (40, 160),
        "bmi": (10, 60),
    }
    for i, name in enumerate(("sleep", *LABORATORY, *body)):
        low, high = body.get(name, (0, 400))
        values = low + (high - low) * generator.beta(2 + age / 40, 3 + i % 3, rows)
        frame[name] = np.where(generator.random(rows) < 0.08, np.nan, values)
        columns[name] = {"type": "continuous", "bounds": [low, high], "nullable": True}
        bins[name] = 10
    release = everyone(frame, bins=bins)
    return frame, {"columns": columns, "releases": [release]}


def measure(name: str, folder: Path, alpha: str) -> dict[str, object]:
    """The figures of one survey."""
    plan = write(name, folder, alpha)
    start = command(["-c", "import schemas.plan"], folder)[1]
    explained = command(["-m", "flows.cli", "explain", str(plan)], folder)[1]
    text, seconds, gib = command(
        ["-m", "flows.cli", "run", str(plan), "--out", str(folder / "out")], folder
    )
    bundle = Path(text.splitlines()[-1])
    files = [path for path in bundle.rglob("*") if path.is_file()]
    manifest = json.loads((bundle / "manifest.json").read_text())
    sizes = sizes_of(json.loads(plan.read_text(encoding="utf-8")))
    steps = sorted(steps_of(text).items(), key=lambda step: -step[1])
    return {
        "survey": name,
        "columns": len(sizes),
        "cells": round(sum(map(math.log10, sizes)), 1),
        "tables": manifest["releases"][0]["facts"]["tables"],
        "explain": round(explained - start, 2),
        "seconds": round(seconds, 1),
        "gib": round(gib, 2),
        "steps": dict(steps[:6]),
        "files": len(files),
        "mib": round(sum(path.stat().st_size for path in files) / 2**20, 1),
    }


def sizes_of(plan: Plan) -> list[int]:
    """The cells of each column, null included."""
    bins = plan["releases"][0].get("bins", {})

    def size(name: str, column: Any) -> int:
        edges = bins.get(name)
        if isinstance(edges, int):
            cells = edges
        else:
            cells = len(column["categories"]) if edges is None else len(edges) - 1
        return cells + bool(column.get("nullable"))

    return [size(name, column) for name, column in plan["columns"].items()]


def steps_of(text: str) -> dict[str, float]:
    """The seconds of each step, as the command line prints them."""
    return {
        found[2][:40]: float(found[1])
        for line in text.splitlines()
        if (found := re.match(r" *([\d.]+) s  (.*)", line))
    }


def command(arguments: list[str], folder: Path) -> tuple[str, float, float]:
    """Output, processor seconds and peak GiB of one process."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "DPRELEASE_HOME": str(folder / "home"),
        "DPRELEASE_LEDGER": f"sqlite:///{folder / 'ledger.sqlite'}",
    }
    code = (
        "import json, resource, subprocess, sys\n"
        "done = subprocess.run([sys.executable, *sys.argv[1:]], text=True,"
        " stdout=subprocess.PIPE, stderr=subprocess.STDOUT)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "seconds = used.ru_utime + used.ru_stime\n"
        "print(json.dumps([done.returncode, done.stdout, seconds, used.ru_maxrss]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    status, text, seconds, peak = json.loads(done.stdout)
    if status:
        raise SystemExit(text)
    return text, seconds, peak / 2**20


if __name__ == "__main__":
    main()
