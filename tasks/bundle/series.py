"""Finds the bundles of a series' earlier runs, in the folder of the one that is being made.

    published/DATASET/jan   run 1 of the series   --.
    published/DATASET/feb   run 2                 --+--> the draws of runs 1, 2, in order
    published/DATASET/mar   run 3, being made       |
    published/DATASET/other another plan          --'   not of this series

Two plans belong to one series if they differ only in the run, the budget, the guess of the number of
records, and words for readers.  Everything here is published already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcore.errors import DPReleaseError, InputError, UnreadableError
from dpcore.line.statistic import Noisy
from schemas.plan.series import of_any_run
from tasks.bundle.folders import folders_in
from tasks.bundle.reader import BundleReader
from tasks.bundle.verify import read_manifest
from tasks.workplace.job import ReleaseJob


@dataclass(frozen=True)
class EarlierRuns:
    """The bundles of runs 1..run-1 of a series, in order."""

    bundles: Sequence[BundleReader]

    @property
    def release_ids(self) -> list[str]:
        return [bundle.manifest.release_id for bundle in self.bundles]

    def draws(self, name: str) -> list[tuple[Any, Noisy]]:
        """For each run, the release of this name and its draw; its class is the same in all runs."""
        return [(bundle.plan.built[name], bundle.draw(name)) for bundle in self.bundles]


def earlier_runs(job: ReleaseJob) -> EarlierRuns:
    """Find the earlier runs of the plan's series among the dataset's bundles.

    Raises ``InputError`` if one of them is missing or cannot be read, or another release has published
    this run, and ``BundleError`` if one was changed.
    """
    series, published = job.plan.series, job.folder
    if series is None:
        return EarlierRuns(())
    runs: dict[int, Path] = {}
    for path in folders_in(published).values():
        try:
            manifest = read_manifest(path)
        except UnreadableError:
            raise
        except DPReleaseError:
            continue  # of another plan, or reported as missing below
        same = of_any_run(manifest.plan) == of_any_run(job.plan.public())
        if not same or manifest.release_id == job.release_id:
            continue
        run = int(manifest.plan["series"]["run"])
        if run == series.run or run in runs:
            raise InputError(
                f"series.run: run {run} was published as release {manifest.release_id} in {published},"
                " and a period is released only once; write the number of another period"
            )
        runs[run] = path
    missing = [str(run) for run in range(1, series.run) if run not in runs]
    if missing:
        raise InputError(
            f"series.run: run {series.run} is computed from all earlier runs, and {published} lacks the"
            f" {'bundle of run' if len(missing) == 1 else 'bundles of runs'} {', '.join(missing)}:"
            " release them first, or name their folder with --out"
        )
    return EarlierRuns([BundleReader.open(runs[run]) for run in range(1, series.run)])
