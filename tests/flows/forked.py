"""Carry out runs of a Prefect server as its worker does, each in a fork of one process.

    python -m tests.flows.forked RUN...

A worker starts a new interpreter for every run, which takes it seconds of processor time to import all.
"""

import os
import runpy
import sys
from importlib import import_module

from tasks.workplace.places import FLOW_RUN


def main(runs: list[str]) -> None:
    for name in ("prefect.flow_engine", "flows.ad_hoc", "flows.deployed"):
        import_module(name)
    for run in runs:
        child = os.fork()
        if not child:
            os.environ[FLOW_RUN] = run
            sys.argv = ["engine", run]
            sys.modules.pop("prefect.engine", None)
            runpy.run_module("prefect.engine", run_name="__main__", alter_sys=True)
            sys.exit()
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
