"""Suggests a known name for an unknown one.

>>> suggestion("histogramm", ["histogram", "margins"])
"; did you mean 'histogram'?"
>>> suggestion("epsilon", ["alpha", "beta"])
'; epsilon is called alpha here'
>>> suggestion("pairs.sex.age", ["pairs.age.sex"])
"; did you mean 'pairs.age.sex'?"
>>> suggestion("telepathy", ["histogram", "margins"])
''
>>> suggestion("person", ["persons", "households", "persons_2024"], most=2)
"; did you mean 'persons' or 'persons_2024'?"
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
"""The names of parameters in the literature, and their names here."""


def suggestion(word: object, known: Iterable[object], most: int = 1, least: float = 0.6) -> str:
    """The end of an error message: up to ``most`` known names similar to ``word``, or nothing.

    ``least``: the least similarity, from 0 to 1.
    """
    names = [str(name) for name in known]
    here = ELSEWHERE.get(str(word).lower())
    if here in names:
        return f"; {word} is called {here} here"
    parts = sorted(str(word).lower().split("."))
    other_order = [name for name in names if sorted(name.lower().split(".")) == parts]
    if other_order:
        return f"; did you mean {other_order[0]!r}?"
    folded = {name.lower(): name for name in names}
    close = get_close_matches(str(word).lower(), folded, n=most, cutoff=least)
    *others, last = [repr(folded[name]) for name in close] or [""]
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"; did you mean {listed}?" if close else ""
