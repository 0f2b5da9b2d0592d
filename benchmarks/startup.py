"""What starting up costs a small run.

    python -m benchmarks.startup

prints one JSON line per command: ``wall`` and ``cpu`` seconds, the least of ``--repeats`` processes
after one that warms the disk.  ``explain`` and ``run`` are the commands on the plan of the demo (each
run publishes anew), ``open_bundle`` opens its bundle from Python; ``import`` is the import of a library
that the command line needs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLAN = "deployments/plans/fair.yaml"
OPEN = """
import dprelease, glob, os
dprelease.open_bundle(*glob.glob(os.environ["DPRELEASE_HOME"] + "/*/fair-1978/*"))
"""
PYTHON = sys.executable
COMMANDS = {
    "--version": [PYTHON, "-m", "flows.cli", "--version"],
    "--help": [PYTHON, "-m", "flows.cli", "--help"],
    "explain": [PYTHON, "-m", "flows.cli", "explain", PLAN],
    "run": [PYTHON, "-m", "flows.cli", "run", PLAN],
    "open_bundle": [PYTHON, "-c", OPEN],
    "import the plan's modules": [PYTHON, "-c", "import schemas.plan"],
    "import Prefect": [PYTHON, "-c", "import prefect"],
    "import Prefect's server": [PYTHON, "-c", "import prefect.server.api.server"],
    "import pandera and Ibis": [PYTHON, "-c", "import pandera.ibis"],
}


def main() -> None:
    """Measure every command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="default: 5")
    options = parser.parse_args()
    for name, command in COMMANDS.items():
        with tempfile.TemporaryDirectory() as home:
            if name == "open_bundle":
                measure(COMMANDS["run"], Path(home))
            times = [measure(command, Path(home)) for _ in range(options.repeats + 1)][1:]
        wall, cpu = (min(kind) for kind in zip(*times, strict=True))
        print(
            json.dumps({"command": name, "wall": round(wall, 2), "cpu": round(cpu, 2)}), flush=True
        )


def measure(command: list[str], home: Path) -> tuple[float, float]:
    """(wall, cpu) seconds of one process, with its own ledger and folder of bundles."""
    fresh = Path(tempfile.mkdtemp(dir=home))
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "DPRELEASE_HOME": str(home),
        "DPRELEASE_LEDGER": f"sqlite:///{fresh / 'ledger.sqlite'}",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    if "run" in command:
        command = [*command, "--out", str(fresh)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
