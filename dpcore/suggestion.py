"""Suggests the name that was meant for one that is not known.

>>> suggestion("histogramm", ["histogram", "margins"])
"; did you mean 'histogram'?"
>>> suggestion("epsilon", ["alpha", "beta"])
'; epsilon is called alpha here'
>>> suggestion("pairs.sex.age", ["pairs.age.sex"])
"; did you mean 'pairs.age.sex'?"
>>> suggestion("telepathy", ["histogram", "margins"])
''
"""

from collections.abc import Iterable
from difflib import get_close_matches

ELSEWHERE = {
    "epsilon": "alpha",
    "eps": "alpha",
    "delta": "beta",
    "float": "continuous",
    "int": "integer",
    "string": "categorical",
}
"""What the literature calls a parameter, and its name here."""


def suggestion(word: object, known: Iterable[object]) -> str:
    """The end of an error message: the known name that is most like ``word``, or nothing."""
    names = [str(name) for name in known]
    here = ELSEWHERE.get(str(word).lower())
    if here in names:
        return f"; {word} is called {here} here"
    parts = sorted(str(word).lower().split("."))
    other_order = [name for name in names if sorted(name.lower().split(".")) == parts]
    if other_order:
        return f"; did you mean {other_order[0]!r}?"
    folded = {name.lower(): name for name in names}
    close = get_close_matches(str(word).lower(), folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""
