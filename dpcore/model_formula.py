"""Formulas of models, as in R: the response, ~ and the terms, such as ``{hours > 40} ~ age * C(code)``.

A formula consists of names of columns (`between these` if they are not a single word), numbers, texts,
comparisons, operators and calls.  The library that computes formulas, ``formulaic``, runs them as
Python, so a plan may contain only what ``ModelFormula.read`` accepts.

>>> found = ModelFormula.read("pay ~ age + `years.1`")
>>> found.response, found.terms, found.names
('pay', 'age + `years.1`', ['pay', 'age', 'years.1'])
>>> found.added_columns()
['age', 'years.1']
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

TOKEN = re.compile(
    r"""(?P<blank>[ ]+)
    | `(?P<quoted>[^`]+)`
    | (?P<name>[^\W\d]\w*)
    | (?P<number>[0-9]{1,15}(\.[0-9]{0,15})?([eE][+-]?[0-9]{1,2})?)(?!\w)
    | (?P<text>'[^'"\\\n]*'|"[^'"\\\n]*")
    | (?P<compared>[=!]=)
    | (?P<product>[*:/])(?![*=])
    | (?P<sign>[<>]=?(?![<>])|[-+~|&(){},])""",
    re.VERBOSE,
)


INSTEAD = "a square is {x * x}, and categories are C(x)"
"""What to write instead of what other tools allow."""


class Token(NamedTuple):
    """A word of a formula; ``kind``: name, number, text, compared, product or sign; ``called``: whether
    a bracket follows it."""

    kind: str
    word: str
    called: bool


class ModelFormula(NamedTuple):
    """The text of both sides, and all words."""

    response: str
    terms: str
    tokens: tuple[Token, ...]

    @classmethod
    def read(cls, text: str) -> ModelFormula:
        """Raises ``ValueError`` if it is not of this form."""
        place, tokens = 0, []
        while place < len(text):
            found = TOKEN.match(text, place)
            if found is None:
                raise ValueError(
                    f"{text[place : place + 10]!r} is not allowed in a plan's formula; {INSTEAD}"
                )
            kind, place = str(found.lastgroup), found.end()
            if kind != "blank":
                called = text[place:].lstrip().startswith("(")
                kept = "name" if kind == "quoted" else kind
                tokens.append(Token(kept, found[kind], called))
        response, tilde, terms = text.partition("~")
        if not (tilde and response.strip() and terms.strip()) or "~" in terms:
            raise ValueError("write the response, ~ and the terms, such as y ~ a + b")
        middle = next(i for i, each in enumerate(tokens) if (each.kind, each.word) == ("sign", "~"))
        explained, explaining = (
            {token.word for token in side if token.kind == "name" and not token.called}
            for side in (tokens[:middle], tokens[middle:])
        )
        # The term determines the response: there is nothing to estimate.
        if len(explained) == 1 and explained <= explaining:
            raise ValueError(f"{explained.pop()} is the response; leave it out of the terms")
        return cls(response.strip(), terms.strip(), tuple(tokens))

    @property
    def names(self) -> list[str]:
        """Every name, of a column or of a function, in order."""
        return [token.word for token in self.tokens if token.kind == "name"]

    def added_columns(self) -> list[str] | None:
        """The columns of the terms if the terms are a sum of columns and the response is a column."""
        words = [token.word if token.kind == "sign" else "" for token in self.tokens]
        names = self.tokens[::2]
        plain = all(token.kind == "name" and not token.called for token in names)
        added = len(words) > 2 and words[1::2] == ["~", *["+"] * (len(names) - 2)]
        return self.names[1:] if plain and added and len(words) % 2 else None


def backticks_wanted(text: str, columns: Iterable[str]) -> str:
    """Advice with the corrected formula if a name of several words lacks backticks; otherwise ''.

    >>> backticks_wanted("pay ~ C(home town) + `body mass` + age", ["pay", "home town", "body mass"])
    'write pay ~ C(`home town`) + `body mass` + age: names that are not single words need backticks'
    """
    written = with_backticks(text, columns)
    if written == text:
        return ""
    return f"write {written}: names that are not single words need backticks"


def with_backticks(text: str, columns: Iterable[str]) -> str:
    """The formula with backticks around those names of columns that are not single words."""
    names = [name for name in columns if not re.fullmatch(r"[^\W\d]\w*|[\d.]+", name)]
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    known = "|".join(map(re.escape, longest_first))
    kept = "`[^`]*`|'[^']*'|\"[^\"]*\""  # in backticks already, or a text
    pattern = rf"({kept})|(?<![\w.])({known})(?![\w.])"
    return re.sub(pattern, lambda found: found[1] or f"`{found[2]}`", text)
