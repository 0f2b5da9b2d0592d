"""Carries out one run of a worker: ``python -m flows.operation.engine``.

Prefect's own worker starts a process that imports Prefect only to start a second process; both free all
objects when they end. This module is only the second process, and ends without freeing.
"""

import runpy

from flows import whole_process

if __name__ == "__main__":
    whole_process(lambda: runpy.run_module("prefect.engine", run_name="__main__", alter_sys=True))
