"""The progress of a long computation: public words and numbers, after the privacy line.

>>> with reporting(lambda what, done, of: print(what, done, of)):
...     report("fit", 1, 2)
fit 1 2
>>> report("fit", 2, 2)  # no listener
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def reporting(listener: Listener) -> Iterator[None]:
    """Within this context, ``report(what, done, of)`` calls ``listener(what, done, of)``."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(what: str, done: int, of: int) -> None:
    """Call the listener, if there is one.  ``what``: public words."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, of)
