"""What ``dprelease explain`` states of time and memory, beside what a run takes.

    python -m benchmarks.scale.work fair histogram margins density classifier nhanes 30x8x20000
    python -m benchmarks.scale.work waves-10000 waves-1000000 waves-10000000

prints one JSON line for each survey: processor seconds and peak GiB of ``dprelease run`` as stated and
as measured, and the ratios of both.  Surveys of ``benchmarks.scale.width``, and of one release each:

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
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.scale.width import Plan, command, kinds_of_people, write, write_plan
from benchmarks.startup import ROOT

FAIR = ROOT / "deployments" / "plans" / "fair.yaml"


def main() -> None:
    """Measure every survey."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("surveys", nargs="+", help="as above, or those of benchmarks.scale.width")
    for name in parser.parse_args().surveys:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measured(name, Path(folder))), flush=True)


def measured(name: str, folder: Path) -> dict[str, object]:
    """The figures of one survey."""
    plan = plan_of(name, folder)
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
