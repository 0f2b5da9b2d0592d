"""Steps that run at the same time leave what they would leave one after the other."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcore.errors import InputError
from dpcore.sampling.source import SeededSource, SystemSource
from schemas.plan import load_plan
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url

pytestmark = pytest.mark.usefixtures("prefect")


def drawn(plan_path: Path, release_id: str, runner: Any = None) -> dict[str, object]:
    """Draw all releases, by a runner or (None) one after the other; what the ledger then holds."""
    from prefect import flow

    from flows.operation.parallel import wait_for_all
    from tasks.budget.charge import reserve_budget
    from tasks.draw import draw, tally_survey
    from tasks.survey.steps import ingest_survey
    from tasks.workplace.job import ReleaseJob

    plan = load_plan(plan_path)
    job = ReleaseJob(plan, release_id)

    @flow(task_runner=runner, persist_result=False)
    def cross() -> None:
        workspace = plan_path.parent / release_id
        survey = ingest_survey(plan, workspace)
        reserve_budget(job)
        folder = tally_survey(job, list(plan.built), survey, workspace)
        parameters = [
            (job, name, name, folder, SeededSource(i)) for i, name in enumerate(plan.built)
        ]
        if runner is None:
            for values in parameters:
                draw(*values)
        else:
            wait_for_all(draw.submit(*values) for values in parameters)

    cross()
    charges = Ledger(ledger_url()).release(plan.dataset, release_id)
    return {name: (c.budget, c.event, c.state, c.digest) for name, c in charges.items()}


@pytest.mark.slow
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
