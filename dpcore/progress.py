"""How far a long computation is, for whoever waits: public words and numbers, after the privacy line.

>>> with reporting(lambda what, done, of: print(what, done, of)):
...     report("fit", 1, 2)
fit 1 2
>>> report("fit", 2, 2)  # nobody waits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def reporting(listener: Listener) -> Iterator[None]:
    """Inside, ``report`` calls ``listener`` with what is done, how far, and of how much."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(what: str, done: int, of: int) -> None:
    """Tell the listener, if there is one.  ``what``: public words."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, of)
