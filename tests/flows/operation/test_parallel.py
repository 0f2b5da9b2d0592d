"""Steps that run at the same time leave what they would leave one after the other."""

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError
from dpcore.sampling.source import SeededSource, SystemSource
from schemas.plan import load_plan
from tasks.bundle.verify import read_manifest, verify_budget, verify_files
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.waiting import SECONDS

pytestmark = pytest.mark.usefixtures("prefect")


def drawn(plan_path: Path, release_id: str, runner: Any = None) -> dict[str, object]:
    """Draw all releases, by a runner or (None) one after the other; what the ledger then holds."""
    from prefect import flow

    from flows.operation.parallel import wait_for_all
    from tasks.budget.charge import reserve_budget
    from tasks.draw import draw, tally_survey
    from tasks.survey.steps import ingest_survey

    plan = load_plan(plan_path)

    @flow(task_runner=runner, persist_result=False)
    def cross() -> None:
        workspace = plan_path.parent / release_id
        survey = ingest_survey(plan, workspace)
        reserve_budget(plan, release_id)
        folder = tally_survey(plan, release_id, list(plan.built), survey, workspace)
        parameters = [
            (plan, release_id, name, name, folder, SeededSource(i))
            for i, name in enumerate(plan.built)
        ]
        if runner is None:
            for values in parameters:
                draw(*values)
        else:
            wait_for_all(draw.submit(*values) for values in parameters)

    cross()
    charges = Ledger(ledger_url()).release(plan.dataset, release_id)
    return {name: (c.budget, c.event, c.state, c.digest) for name, c in charges.items()}


def test_threads_draw_and_charge_what_a_sequence_does(plan_path, plan_document):
    from prefect.task_runners import ThreadPoolTaskRunner

    in_sequence = drawn(plan_path, "sequence")
    in_threads = drawn(plan_path, "threads", ThreadPoolTaskRunner(max_workers=4))
    assert set(in_sequence) == {section["name"] for section in plan_document["releases"]}
    assert list(in_sequence.items()) == list(in_threads.items())


def test_noise_of_threads_that_draw_at_once_never_repeats():
    with ThreadPoolExecutor(8) as pool:
        words = list(pool.map(lambda _: SystemSource().words(1000), range(64)))
    assert len(np.unique(words)) == 64_000  # a repeat among them has a chance of 1e-10


@pytest.fixture
def dask(plan_path, own_home, monkeypatch):
    """The address of a Dask scheduler with two workers, each a process of its own, on loopback."""
    from dask import config

    for kind in ("CONNECT", "TCP"):  # a busy machine may be silent for longer than half a minute
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{kind}", "600s")
    config.refresh()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", address]
    scheduler += ["--dashboard-address", "127.0.0.1:0"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
    worker += ["--nworkers", "2", "--no-dashboard", "--local-directory", str(plan_path.parent)]
    with ExitStack() as stack:
        for command in (scheduler, worker):
            process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield address
    monkeypatch.undo()
    config.refresh()


@pytest.mark.slow
def test_dask_workers_of_their_own_processes_publish(plan_path, dask):
    """The flow runs in a process of its own too."""
    out = plan_path.parent / "out"
    run = [sys.executable, "-m", "flows.cli", "run", str(plan_path), "--release-id", "r1"]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "DPRELEASE_DASK": dask}
    done = subprocess.run(
        [*run, "--out", str(out)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    manifest = read_manifest(Path(done.stdout.strip()))
    assert verify_files(out / "survey" / "r1", manifest) > 10
    assert verify_budget(manifest, Ledger(ledger_url())) == Budget.of("4", "1e-6")
    # The steps told their times to the workers, not to the command.
    assert "short audit" in done.stderr
    assert "histogram" not in done.stderr


def test_a_failure_is_told_only_once_nothing_runs_any_more(tmp_path):
    from prefect import flow
    from prefect.task_runners import ThreadPoolTaskRunner

    from flows.operation.parallel import wait_for_all
    from tasks.workplace.step import step

    @step("work")
    def work(seconds: float, file: Path) -> None:
        if not seconds:
            raise InputError("the first fails")
        time.sleep(seconds)
        file.touch()

    @flow(task_runner=ThreadPoolTaskRunner(max_workers=2), persist_result=False)
    def both() -> None:
        wait_for_all([work.submit(0, tmp_path / "never"), work.submit(0.5, tmp_path / "done")])

    with pytest.raises(InputError, match="the first fails"):
        both()
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["done"]


def test_dask_is_asked_for_by_its_address(monkeypatch):
    from prefect.task_runners import ThreadPoolTaskRunner

    from flows.operation.parallel import task_runner

    assert isinstance(task_runner(), ThreadPoolTaskRunner)
    monkeypatch.setenv("DPRELEASE_DASK", "tcp://127.0.0.1:8786")
    monkeypatch.setitem(sys.modules, "prefect_dask.task_runners", None)
    with pytest.raises(InputError, match=r"pip install .dprelease\[dask\]"):
        task_runner()
