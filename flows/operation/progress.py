"""Shows the progress of steps: lines on standard error, and a bar on a terminal or in a notebook.

The bar shows the progress of the whole run and the time that is left, by the work that ``dprelease
explain`` expects for each release.  Pipes, files and logs get only lines.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from html import escape
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from schemas.plan import Plan
from tasks.explain.work import START, work_of
from tasks.workplace.step import LOGGER, StepProgress

SHARES = {"draw": (0.0, 0.3), "write tables": (0.3, 1.0), "synthesize": (0.0, 1.0)}
"""For each step: the fractions of the work for its release that are done before and after it."""

WHOLE = {
    "check budget": 0.5,  # start-up is finished
    "short audit": 0.7,
    "ingest": 0.73,
    "validate": 0.77,
    "tally": 0.8,
    "publish": 1.0,
}
"""For each step of the whole run: the fraction of the work outside releases that is then done."""


@contextmanager
def showing(plan: Plan | None, level: int = logging.INFO, *, unseen: bool = True) -> Iterator[None]:
    """Within this context, show log lines of at least this level.

    ``plan``: the plan of the run, if terminals and notebooks are to show a progress bar too;
    ``unseen``: print the lines also if the output goes to a pipe or a file.
    """
    console, show = Console(stderr=True, highlight=False), _notebook()
    if not (unseen or show or console.is_terminal):
        yield
        return
    can_move = console.is_terminal and not console.is_dumb_terminal
    bar = _Bar(plan, console) if plan and can_move and not show else None
    before = LOGGER.handlers, LOGGER.level, LOGGER.propagate
    handler = _InNotebook(plan, show) if show else bar or _Lines(console)
    LOGGER.handlers, LOGGER.propagate = [handler], False
    LOGGER.setLevel(logging.DEBUG if bar or show else level)
    try:
        with bar.display if bar else nullcontext():
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


class _Bar(_Lines):
    """Prints the lines about the ends of steps, and moves the bar."""

    def __init__(self, plan: Plan, console: Console):
        super().__init__(console)
        self.display = Progress(
            TextColumn("  {task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[now]}", style="dim", markup=False),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            refresh_per_second=4,
        )
        self.seconds = {name: 0.2 + release.work.seconds for name, release in plan.built.items()}
        self.seconds |= {table.name: 0.2 for table in plan.synthesis}
        of_releases = sum(self.seconds.values())
        self.rest = max(START.seconds, work_of(plan).seconds - of_releases)
        self.done = dict.fromkeys(self.seconds, 0.0)
        self.done_alone = 0.0
        words = f"all of {plan.dataset}"
        self.bar = self.display.add_task(words, total=self.rest + of_releases, now="starting")

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.INFO:
            super().emit(record)
        if isinstance(moment := getattr(record, "moment", None), StepProgress):
            self._move(moment)

    def _move(self, moment: StepProgress) -> None:
        part, ended = moment.done / moment.of, moment.done == moment.of == 1
        if moment.about in self.done and moment.step in SHARES:
            first, last = SHARES[moment.step]
            place = self.seconds[moment.about] * (first + (last - first) * part)
            self.done[moment.about] = max(place, self.done[moment.about])
        elif ended:
            self.done_alone = max(self.done_alone, self.rest * WHOLE.get(moment.step, 0.0))
        done = self.done_alone + sum(self.done.values())
        self.display.update(self.bar, completed=done, now="" if ended else moment.step)


class _InNotebook(logging.Handler):
    """Shows the last line, and the bar if there is a plan."""

    def __init__(self, plan: Plan | None, show: Callable[[str], None]):
        super().__init__()
        self.bar, self.show = _Bar(plan, Console(quiet=True)) if plan else None, show

    def emit(self, record: logging.LogRecord) -> None:
        value, moment = "", getattr(record, "moment", None)
        if self.bar:
            self.bar.emit(record)
            (whole,) = self.bar.display.tasks
            value = f' value="{whole.completed / (whole.total or 1):.3f}"'
        words = moment.words if moment else record.getMessage().strip()
        self.show(f"<progress{value}></progress> {escape(words)}")


def _notebook() -> Callable[[str], None] | None:
    """A function that replaces the HTML that it showed before in a notebook; None elsewhere."""
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return None
    import IPython.display

    shown: Any = IPython.display
    handle = shown.display(shown.HTML(""), display_id=True)
    return lambda html: handle.update(shown.HTML(html))
