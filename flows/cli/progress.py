"""Shows the progress of steps on standard error: lines, and bars below them on a terminal.

The bars are for people who wait: one for each release and synthetic table, and one for the whole run
with the time that is left, by the work that ``dprelease explain`` expects of each.  In a pipe, a file
or a log there are lines alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from schemas.plan import Plan
from tasks.explain.work import START, work_of
from tasks.workplace.step import LOGGER, Moment

SHARES = {
    "draw": (0.0, 0.3),
    "write tables": (0.3, 1.0),
    "synthesize": (0.0, 1.0),
    "audit": (0.0, 1.0),
}
"""By step: the part of its release's bar that it fills, from where to where."""

WHOLE = {"short audit": 0.4, "ingest": 0.45, "validate": 0.5, "tally": 0.6, "publish": 1.0}
"""By step of the whole run: how much of the work that belongs to no release is then done."""


@contextmanager
def showing(plan: Plan | None, verbose: bool) -> Iterator[None]:
    """Within this context, show the progress of steps; ``plan``: of the run, whose bars to show."""
    console = Console(stderr=True, highlight=False)
    handler: logging.Handler = _Lines(console)
    level = logging.DEBUG if verbose else logging.INFO
    bars = (
        _Bars(plan, console)
        if plan and console.is_terminal and not console.is_dumb_terminal
        else None
    )
    if bars:
        handler, level = bars, logging.DEBUG
    LOGGER.handlers, LOGGER.propagate = [handler], False
    LOGGER.setLevel(level)
    if not bars:
        yield
        return
    with bars.display:
        yield


class _Lines(logging.Handler):
    """Prints each line."""

    def __init__(self, console: Console):
        super().__init__()
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        self.console.print(record.getMessage(), soft_wrap=True, markup=False)


class _Bars(_Lines):
    """Prints the lines that tell of an end, and moves the bars."""

    def __init__(self, plan: Plan, console: Console):
        super().__init__(console)
        self.display = Progress(
            TextColumn("  {task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[now]}", style="dim", markup=False),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            speed_estimate_period=600,
        )
        seconds = {name: 0.2 + release.work.seconds for name, release in plan.built.items()}
        seconds |= {table.name: 0.2 for table in plan.synthesis}
        self.rest = max(START.seconds, work_of(plan).seconds - sum(seconds.values()))
        self.bars = {name: self._add(name, total) for name, total in seconds.items()}
        self.whole = self._add(f"all of {plan.dataset}", self.rest + sum(seconds.values()))
        self.done_alone = 0.0

    def _add(self, name: str, seconds: float) -> TaskID:
        return self.display.add_task(name, total=seconds, now="")

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.INFO:
            super().emit(record)
        if isinstance(moment := getattr(record, "moment", None), Moment):
            self._move(moment)

    def _move(self, moment: Moment) -> None:
        part, ended = moment.done / moment.of, moment.done == moment.of == 1
        if moment.about in self.bars and moment.step in SHARES:
            bar = self.bars[moment.about]
            first, last = SHARES[moment.step]
            total = self.display.tasks[bar].total or 0.0
            place = total * (first + (last - first) * part)
            now = "" if ended else moment.words.partition(": ")[0]
            completed = max(place, self.display.tasks[bar].completed)
            self.display.update(bar, completed=completed, now=now)
        elif ended:
            self.done_alone = max(self.done_alone, self.rest * WHOLE.get(moment.step, 0.0))
        done = sum(self.display.tasks[bar].completed for bar in self.bars.values())
        now = "" if ended else moment.step
        self.display.update(self.whole, completed=self.done_alone + done, now=now)
