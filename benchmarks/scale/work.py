"""What ``dprelease explain`` states of time and memory, beside what a run takes.

    python -m benchmarks.scale.work
    python -m benchmarks.scale.work fair histogram margins density classifier nhanes 30x8x20000
    python -m benchmarks.scale.work waves-10000 waves-1000000 waves-10000000

prints one JSON line for each survey: processor seconds and peak GiB of ``dprelease run`` as stated and
as measured, and the ratios of both.  Without a survey, one line for everything that may grow
(``GROWTH``): the seconds for several sizes, without those of a tiny plan, the seconds that ``explain``
states, and the exponents of the seconds and of the published cells from the first to the last size.
Work is in proportion where its exponent is at most 1.1, or 1.1 times that of the cells.

Surveys of ``benchmarks.scale.width``, and of one release each:

    fair         the demo: a histogram, all pairs of nine columns, a density and a classifier
    histogram    four columns of 32 categories each: a million cells, 50,000 records
    margins      all pairs of twelve columns of six categories, 200,000 records
    density      two columns of numbers, 100,000 records
    classifier   by three columns of numbers, 20,000 records
    waves-N      noisy-gradients by eight columns of numbers, N records
    PLAN.yaml    any plan whose table is there
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.scale.width import Plan, command, kinds_of_people, write, write_plan
from benchmarks.startup import ROOT
from dpcore.accounting.budget import Budget
from dpcore.line.statistic import Noisy
from tasks.ledger import Charge, ChargeRequest, Ledger

FAIR = ROOT / "deployments" / "plans" / "fair.yaml"

GROWTH = {
    "rows": [200_000, 2_000_000],
    "columns": [12, 36],
    "cells": [32, 128],
    "releases": [10, 40],
    "records": [300_000, 3_000_000],
    "history": [100, 1000],
    "categories": [10_000, 100_000],
}
"""Sizes: of the table, of the plan (cells of a column; releases that share columns), of the synthetic
table, of the ledger (releases before), and the categories of a single column."""


def main() -> None:
    """Measure every survey."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("surveys", nargs="*", help="as above, or those of benchmarks.scale.width")
    parser.add_argument("--growth", nargs="+", choices=GROWTH, default=[], help="default: all")
    options = parser.parse_args()
    for name in options.surveys:
        with tempfile.TemporaryDirectory() as folder:
            found = measured(name, plan_of(name, Path(folder)), Path(folder))
            print(json.dumps(found), flush=True)
    for name in options.growth or ([] if options.surveys else GROWTH):
        print(json.dumps(growth(name)), flush=True)


def growth(name: str) -> dict[str, object]:
    """The exponents of what a run takes, against one of its sizes."""
    sizes, least, seconds, stated, cells = GROWTH[name], 0.0, [], [], []
    for size in (None, *sizes):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            plan = grown("rows", 100, folder) if size is None else grown(name, size, folder)
            found = measured(name, plan, folder)
            least = least or found["measured"]["seconds"]
            if size is not None:
                seconds.append(max(found["measured"]["seconds"] - least, 0.1))
                stated.append(found["stated"]["seconds"])
                cells.append(published(folder))
    times = math.log(sizes[-1] / sizes[0])
    return {
        "growth": name,
        "sizes": sizes,
        "seconds": [round(each, 2) for each in seconds],
        "stated": stated,
        "exponent": round(math.log(seconds[-1] / seconds[0]) / times, 2),
        "of cells": round(math.log(cells[-1] / cells[0]) / times, 2),
    }


def grown(name: str, size: int, folder: Path) -> Path:
    """A plan of tables of counts in which one thing has this size, beside its survey."""
    is_at = {"rows": 20_000, "columns": 6, "cells": 16, "releases": 1, "records": 0, "history": 0}
    is_at |= {"categories": 0, name: size}
    cells = 4 if name in ("columns", "releases") else is_at["cells"]
    codes = kinds_of_people(np.full(is_at["columns"], cells), is_at["rows"])
    frame = pd.DataFrame({f"q{i}": codes[:, i] for i in range(is_at["columns"])})
    answers: Plan = {c: {"type": "categorical", "categories": list(range(cells))} for c in frame}
    releases = [{"name": "pairs", "kind": "margins", "columns": list(frame), "ways": [2]}]
    if name == "releases":
        sets = list(combinations(frame, 3))
        releases = [
            {"name": f"r{i}", "kind": "histogram", "columns": sets[i % 20]} for i in range(size)
        ]
    if name == "categories":
        listed = pd.DataFrame({"q0": [f"c{i}" for i in range(size)]})
        listed.to_csv(folder / "categories.csv", index=False)
        answers = {"q0": {"type": "categorical", "categories": "categories.csv"}}
        frame = pd.DataFrame({"q0": [f"c{i % size}" for i in range(is_at["rows"])]})
        releases = [{"name": "all", "kind": "histogram", "columns": ["q0"]}]
    mechanism = "discrete-gaussian" if releases[0]["kind"] == "margins" else "discrete-laplace"
    plan: Plan = {"columns": answers, "releases": [r | {"mechanism": mechanism} for r in releases]}
    if mechanism == "discrete-laplace":
        plan["budget"] = {key: {"alpha": "1"} for key in ("granted", "requested")}
    if name == "records":
        plan["synthesis"] = [{"name": "people", "from": "pairs", "rows": size}]
    if name == "history":
        ledger = Ledger(f"sqlite:///{folder / 'ledger.sqlite'}")
        granted = {"alpha": "2", "beta": "1e-5"}
        plan["budget"] = {"granted": granted, "requested": {"alpha": "1", "beta": "1e-6"}}
        ledger.grant(f"made-up-{name}", Budget.of(**granted), who="nobody", why="a measurement")
        for i in range(size):
            charge = {"a": Charge(Budget.of("1e-6"), {"neighbours": "replace-one"})}
            ledger.reserve(ChargeRequest(f"made-up-{name}", f"r{i}", "a plan", charge))
            ledger.commit(f"made-up-{name}", f"r{i}", "a", Noisy(np.array([1])))
    return write_plan(name, frame, plan, folder, "1")


def published(folder: Path) -> int:
    """The rows of all tables of the only bundle, and of its records."""
    (manifest,) = (folder / "out").glob("*/*/manifest.json")
    found = json.loads(manifest.read_text(encoding="utf-8"))
    files = [file for release in found["releases"] for file in release["files"]]
    return sum(file["rows"] for file in [*files, *(s["file"] for s in found["synthesis"])])


def measured(name: str, plan: Path, folder: Path) -> dict[str, Any]:
    """The figures of one survey; the run has its home in the folder."""
    stated = json.loads(command(["-m", "flows.cli", "explain", str(plan), "--json"], folder)[0])
    run = ["-m", "flows.cli", "run", str(plan), "--out", str(folder / "out")]
    _, seconds, gib = command(run, folder)
    said = {"seconds": stated["work"]["seconds"], "gib": stated["work"]["bytes"] / 2**30}
    found = {"seconds": seconds, "gib": gib}
    ratios = {key: round(said[key] / found[key], 2) for key in found}
    return {
        "survey": name,
        "stated": {key: round(value, 2) for key, value in said.items()},
        "measured": {key: round(value, 2) for key, value in found.items()},
        "ratio": ratios,
    }


def plan_of(name: str, folder: Path) -> Path:
    """The plan, beside its survey."""
    if name == "fair" or name.endswith(".yaml"):
        return FAIR if name == "fair" else Path(name).resolve()
    sizes = {"histogram": (4, 32, 50_000), "margins": (12, 6, 200_000)}
    if name in sizes:
        columns, cells, rows = sizes[name]
        codes = kinds_of_people(np.full(columns, cells), rows)
        frame = pd.DataFrame({f"q{i}": codes[:, i] for i in range(columns)})
        answers: Plan = {
            c: {"type": "categorical", "categories": list(range(cells))} for c in frame
        }
        release: Plan = {"name": name, "kind": name, "columns": list(frame)}
        release["mechanism"] = "discrete-laplace"
        release |= {"ways": [2], "mechanism": "discrete-gaussian"} if name == "margins" else {}
    elif name in ("density", "classifier") or name.startswith("waves-"):
        columns, rows = {"density": (2, 100_000), "classifier": (3, 20_000)}.get(name) or (
            8,
            int(name.partition("-")[2]),
        )
        values = np.random.default_rng(0).beta(2, 3, (rows, columns))
        frame = pd.DataFrame({f"x{i}": values[:, i] for i in range(columns)})
        answers = {c: {"type": "continuous", "bounds": [0, 1]} for c in frame}
        release = {"name": name, "kind": "density", "columns": list(frame), "bandwidth": 0.05}
        release["mechanism"] = "spectral-gaussian"
        if name != "density":
            release = {"name": name, "kind": "classifier", "features": list(frame)}
            kernel = {"bandwidth": 0.3, "regularisation": 0.01}
            release |= kernel if name == "classifier" else {"mechanism": "noisy-gradients"}
            release["label"] = {"column": "y", "positive": ["yes"]}
            frame["y"] = np.where(values.mean(axis=1) > 0.4, "yes", "no")
            answers["y"] = {"type": "categorical", "categories": ["no", "yes"]}
    else:
        return write(name, folder, "1")
    plan: Plan = {"columns": answers, "releases": [release]}
    if name == "histogram":
        plan["budget"] = {key: {"alpha": "1"} for key in ("granted", "requested")}
    return write_plan(name, frame, plan, folder, "1")


if __name__ == "__main__":
    main()
