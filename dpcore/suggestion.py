"""Suggests the name that was meant for one that is not known.

>>> suggestion("histogramm", ["histogram", "margins"])
"; did you mean 'histogram'?"
>>> suggestion("epsilon", ["alpha", "beta"])
'; epsilon is called alpha here'
>>> suggestion("telepathy", ["histogram", "margins"])
''
"""

from collections.abc import Iterable
from difflib import get_close_matches

ELSEWHERE = {"epsilon": "alpha", "eps": "alpha", "delta": "beta"}
"""What the literature calls a parameter, and its name here."""


def suggestion(word: object, known: Iterable[object]) -> str:
    """The end of an error message: the known name that is most like ``word``, or nothing."""
    names = [str(name) for name in known]
    here = ELSEWHERE.get(str(word).lower())
    if here in names:
        return f"; {word} is called {here} here"
    folded = {name.lower(): name for name in names}
    close = get_close_matches(str(word).lower(), folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""
