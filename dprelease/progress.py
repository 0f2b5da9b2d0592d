"""A bar of the steps that have ended, in a notebook or on a terminal; elsewhere nothing is shown."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from schemas.plan import Plan
from tasks.workplace.step import LOGGER, StepProgress

STEPS = 8
"""Those of every release: budget, audit, ingest, validate, reserve, tally, models, publish."""

WIDTH = 24


@contextmanager
def showing(plan: Plan | None, wanted: bool) -> Iterator[None]:
    """Within this context, show how many steps have ended; of the plan's, if one is given."""
    show = _display() if wanted else None
    if show is None:
        yield
        return
    steps = STEPS + 2 * len(plan.built) + len(plan.synthesis) if plan else 0
    bar, before = _Bar(show, steps), (LOGGER.level, LOGGER.propagate)
    LOGGER.addHandler(bar)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(bar)
        LOGGER.setLevel(before[0])
        LOGGER.propagate = before[1]
        show(None, "")


class _Bar(logging.Handler):
    """Shows each line, and how far the steps are."""

    def __init__(self, show: Callable[[float | None, str], None], steps: int) -> None:
        super().__init__()
        self.show, self.steps, self.done = show, steps, 0

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        moment: StepProgress | None = getattr(record, "moment", None)
        self.done += bool(moment and moment.done == moment.of == 1)
        part = min(1.0, self.done / self.steps) if self.steps else None
        self.show(part, moment.words if moment else line.strip())


def _display() -> Callable[[float | None, str], None] | None:
    """How to show a part and words where this process writes; None where nobody looks."""
    kernel: Any = sys.modules.get("IPython")
    shell = kernel.get_ipython() if kernel else None
    if shell is not None and hasattr(shell, "kernel"):
        return _in_notebook()
    return _on_terminal if sys.stderr.isatty() else None


def _in_notebook() -> Callable[[float | None, str], None]:
    import IPython.display

    shown: Any = IPython.display
    handle = shown.display(shown.HTML(""), display_id=True)

    def show(part: float | None, words: str) -> None:
        value = "" if part is None else f' value="{part:.3f}"'
        bar = f"<progress{value}></progress> {escape(words)}" if words else ""
        handle.update(shown.HTML(bar))

    return show


def _on_terminal(part: float | None, words: str) -> None:
    full = round(WIDTH * (part or 0))
    bar = f"[{'#' * full}{'.' * (WIDTH - full)}] {words}"[:78] if words else ""
    sys.stderr.write(f"\r{bar}\x1b[K")
    sys.stderr.flush()
