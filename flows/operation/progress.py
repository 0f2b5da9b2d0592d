"""Shows the progress of steps: lines on standard error, bars below them on a terminal, or in a notebook.

The bars are for people who wait: one for each release and synthetic table, and one for the whole run
with the time that is left, by the work that ``dprelease explain`` expects of each.  A notebook has the
last one alone.  In a pipe, a file or a log there are only lines.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from html import escape
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from schemas.plan import Plan
from tasks.explain.work import START, work_of
from tasks.workplace.step import LOGGER, StepProgress

SHARES = {"draw": (0.0, 0.3), "write tables": (0.3, 1.0), "synthesize": (0.0, 1.0)}
"""By step: the part of its release's bar that it fills, from where to where."""

WHOLE = {
    "check budget": 0.5,  # starting up is over
    "short audit": 0.7,
    "ingest": 0.73,
    "validate": 0.77,
    "tally": 0.8,
    "publish": 1.0,
}
"""By step of the whole run: how much of the work that belongs to no release is then done."""

PATIENCE = 10.0
"""Seconds of expected work after which the pace so far counts as much as the expected one."""


@contextmanager
def showing(plan: Plan | None, level: int = logging.INFO, *, unseen: bool = True) -> Iterator[None]:
    """Within this context, show the lines of steps of this level; ``plan``: of the run, to show bars.

    ``unseen``: print the lines also where nobody waits for them, in a pipe or a file.
    """
    console, show = Console(stderr=True, highlight=False), _notebook()
    if not (unseen or show or console.is_terminal):
        yield
        return
    can_move = console.is_terminal and not console.is_dumb_terminal
    bars = _Bars(plan, console) if plan and can_move and not show else None
    before = LOGGER.handlers, LOGGER.level, LOGGER.propagate
    handler = _InNotebook(plan, show) if show else bars or _Lines(console)
    LOGGER.handlers, LOGGER.propagate = [handler], False
    LOGGER.setLevel(logging.DEBUG if bars or show else level)
    try:
        with bars.display if bars else nullcontext():
            yield
    finally:
        if show:
            show("")
        LOGGER.handlers, LOGGER.propagate = before[0], before[2]
        LOGGER.setLevel(before[1])


class _Lines(logging.Handler):
    """Prints each line."""

    def __init__(self, console: Console):
        super().__init__()
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        self.console.print(record.getMessage(), soft_wrap=True, markup=False)


class _Bars(_Lines):
    """Prints the lines about the ends of steps, and moves the bars."""

    def __init__(self, plan: Plan, console: Console):
        super().__init__(console)
        self.display = Progress(
            TextColumn("  {task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[now]}", style="dim", markup=False),
            _Left(),
            console=console,
            transient=True,
            refresh_per_second=4,
        )
        seconds = {name: 0.2 + release.work.seconds for name, release in plan.built.items()}
        seconds |= {table.name: 0.2 for table in plan.synthesis}
        self.rest = max(START.seconds, work_of(plan).seconds - sum(seconds.values()))
        self.bars = {name: self._add(name, total) for name, total in seconds.items()}
        self.whole = self._add(f"all of {plan.dataset}", self.rest + sum(seconds.values()))
        self.done_alone = 0.0
        self._move_whole("starting")

    def _add(self, name: str, seconds: float) -> TaskID:
        return self.display.add_task(name, total=seconds, now="", ends=None)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.INFO:
            super().emit(record)
        if isinstance(moment := getattr(record, "moment", None), StepProgress):
            self._move(moment)

    def _move(self, moment: StepProgress) -> None:
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
        self._move_whole("" if ended else moment.step)

    def _move_whole(self, now: str) -> None:
        """Move the bar of the whole run, and say when it will end: as expected, at the pace so far."""
        done = sum(self.display.tasks[bar].completed for bar in self.bars.values())
        done += self.done_alone
        whole = self.display.tasks[self.whole]
        elapsed, left = whole.elapsed or 0.0, (whole.total or 0.0) - done
        pace = (elapsed + PATIENCE) / (done + PATIENCE)
        self.display.update(self.whole, completed=done, now=now, ends=elapsed + left * pace)


class _InNotebook(logging.Handler):
    """Shows the last line, and the bar of the whole run if there is a plan."""

    def __init__(self, plan: Plan | None, show: Callable[[str], None]):
        super().__init__()
        self.bars, self.show = _Bars(plan, Console(quiet=True)) if plan else None, show

    def emit(self, record: logging.LogRecord) -> None:
        value, moment = "", getattr(record, "moment", None)
        if self.bars:
            self.bars.emit(record)
            whole = self.bars.display.tasks[self.bars.whole]
            value = f' value="{whole.completed / (whole.total or 1):.3f}"'
        words = moment.words if moment else record.getMessage().strip()
        self.show(f"<progress{value}></progress> {escape(words)}")


def _notebook() -> Callable[[str], None] | None:
    """What replaces the HTML that it showed before, in the notebook that runs this; None elsewhere."""
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return None
    import IPython.display

    shown: Any = IPython.display
    handle = shown.display(shown.HTML(""), display_id=True)
    return lambda html: handle.update(shown.HTML(html))


class _Left(ProgressColumn):
    """The time that is left of the whole run."""

    def render(self, task: Task) -> Text:
        ends = task.fields["ends"]
        if ends is None or task.finished:
            return Text()
        seconds = max(round(ends - (task.elapsed or 0.0)), 0)
        return Text(f"about {seconds // 60}:{seconds % 60:02} left" if seconds else "", "cyan")
