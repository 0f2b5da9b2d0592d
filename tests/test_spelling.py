"""Every text that a reader can see is spelled right.

The checker knows American English; ``words.txt`` has the British spellings, the terms of the field
and the names that it does not know, one a line.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from spellchecker import SpellChecker

from tests.conftest import ROOT

OURS = Path(__file__).with_name("words.txt")
CODE = re.compile(
    r"```.*?```|``.*?``|`[^`]*`"  # of Markdown and docstrings
    r"|<(script|style)\b.*?</\1>|<[^>]*>|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}"  # of templates
    r"|^\s*(>>>|\.\.\.) .*?$"
    r"|\$[^$\n]*\$",
    re.DOTALL | re.MULTILINE,
)
SQL = re.compile(r"\b(SELECT|CREATE|INSERT|UPDATE|ALTER|GRANT|PRAGMA|COPY|SET|FROM|WHERE)\b")
WORD = re.compile(r"[A-Za-z][a-z]{2,}('[a-z]+)?")


def strings(file: Path) -> Iterator[str]:
    """The docstrings of a module and its texts of several words; ``{}`` for what is filled in."""
    inside = set()
    for node in ast.walk(ast.parse(file.read_text())):  # an f-string comes before its parts
        if isinstance(node, ast.JoinedStr):
            inside.update(map(id, node.values))
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            yield node.value


def texts() -> Iterator[tuple[Path, str]]:
    """All texts and the files that they are in."""
    for package in ("dpcore", "schemas", "tasks", "flows", "dprelease"):
        for file in sorted((ROOT / package).rglob("*.py")):
            kept = (text for text in strings(file) if " " in text and not SQL.search(text))
            yield from ((file, text) for text in kept)
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs" / "pages").rglob("*.md")]
    for file in sorted([*pages, *(ROOT / "tasks" / "report" / "templates").glob("*.html")]):
        yield file, file.read_text()
    for file in sorted((ROOT / "deployments" / "plans").rglob("*.yaml")):
        yield from ((file, text) for text in said(yaml.safe_load(file.read_text())))


def said(document: Any) -> Iterator[str]:
    """Titles, notes and descriptions of a plan."""
    inside = document.values() if isinstance(document, dict) else document
    for part in inside if isinstance(document, dict | list) else ():
        yield from said(part)
    if isinstance(document, dict):
        named = (document.get(key) for key in ("title", "notes", "description"))
        yield from (text for text in named if isinstance(text, str))


def words(text: str) -> Iterator[str]:
    """The words of a text; tokens with digits, dots, underscores or brackets inside are code."""
    for token in CODE.sub(" ", text).split():
        if token.startswith("-"):  # an option of a command
            continue
        bare = token.strip(".,;:!?()[]\"'*_|")
        for part in re.split(r"[-–—]", bare) if re.fullmatch(r"[A-Za-z'’–—-]+", bare) else ():
            if WORD.fullmatch(part):
                yield part.lower().removesuffix("'s")


@cache
def known() -> SpellChecker:
    checker = SpellChecker()
    checker.word_frequency.load_words(OURS.read_text().split())
    return checker


@pytest.mark.slow
def test_no_text_has_a_misspelling():
    checker = known()
    wrong = {
        f"{file.relative_to(ROOT)}: {word}"
        for file, text in texts()
        for word in words(text)
        if word not in checker
    }
    assert sorted(wrong) == [], "mend these, or list them in tests/words.txt if they are right"


@pytest.mark.parametrize(
    ("text", "misspelled"),
    [
        ("The sum of weightss is noisy.", ["weightss"]),
        ("Recieve a seperate-ly stated error!", ["recieve", "seperate"]),
        ("Neighbours' tables are randomised; `teh` and ``snake_casse`` are code.", []),
        ("alpha_1 = betta(x), see dpcore/poost.py and CamelCasse", []),
        ("{}s of a margn", ["margn"]),
    ],
)
def test_misspellings_are_found_and_code_is_left_out(text: str, misspelled: list[str]):
    checker = known()
    assert [word for word in words(text) if word not in checker] == misspelled


def test_our_words_are_in_order_and_unknown_to_the_checker():
    ours, plain = OURS.read_text().split(), SpellChecker()
    assert ours == sorted(set(ours))
    assert [word for word in ours if word in plain] == []
