"""Published texts are in plain words: of the unit that is counted, and never those of the code."""

import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import pytest

import dpcore
from tests.dpcore.releases.published_texts import Text, all_texts
from tests.test_spelling import known
from tests.test_spelling import words as plain_words

CODE = re.compile(r"`|\b(?:None|True|False|NaN|nan|dtype|u?int\d+|float\d+|bool|str|dict|tuple)\b")
PEOPLE = re.compile(r"\b(?:people|persons?|respondents?|nobody|somebody|who|whom)\b", re.IGNORECASE)
"""A unit or a record need not be a person."""

OTHER_UNIT = {
    True: re.compile(
        r"(?<!synthetic )\brecords?\b|\brows?\b|\bcounts\b|\b(?:a|exact|noisy|of) count\b",
        re.IGNORECASE,
    ),
    # A model says which weights it used: weights (w).
    False: re.compile(r"\bweights?\b(?! \()|\bmultiples? of\b", re.IGNORECASE),
}
"""Words that are wrong where weights are counted, and where records are."""


@cache
def classes() -> set[str]:
    """The names of classes that cannot be words."""
    modules = [import_module(found.name) for found in walk_packages(dpcore.__path__, "dpcore.")]
    names = {name for module in modules for name, _ in inspect.getmembers(module, inspect.isclass)}
    return {name for name in names if re.search("[a-z][A-Z]", name)}


def faults(text: Text) -> Iterator[str]:
    """What is wrong with the words of a text."""
    words = set(re.findall(r"\w+", text.text))
    yield from (f"code: {word}" for word in CODE.findall(text.text))
    yield from (f"code: {word}" for word in words if "_" in word and word not in text.names)
    yield from (f"a class: {word}" for word in words & classes())
    yield from (f"misspelled: {word}" for word in plain_words(text.text) if word not in known())
    if "  " in text.text or text.text != text.text.strip():
        yield "blanks"
    yield from (f"a person: {found[0]}" for found in PEOPLE.finditer(text.text))
    for found in OTHER_UNIT[text.weighted].finditer(text.text):
        # A column may be called count: what is stated of it is not about the unit.
        if not (found[0].endswith("of count") and "count" in text.names):
            yield f"another unit: {found[0]}"


@pytest.mark.slow
def test_every_published_text_is_in_the_words_of_its_unit_and_in_none_of_the_code():
    wrong = {f"{f} in {t.text!r}, {t.where}" for t in all_texts() for f in faults(t)}
    assert not wrong, "\n".join(sorted(wrong))
    assert {text.weighted for text in all_texts()} == {True, False}
    assert any("unit='household'" in text.where for text in all_texts())
    assert any("Sum of weights" in text.text for text in all_texts())


@pytest.mark.parametrize(
    ("text", "weighted"),
    [
        ("sum of weightss", True),
        ("Count of records plus noise", True),
        ("standard error of a count", True),
        ("as counts are whole numbers", True),
        ("Sum of weights plus noise", False),
        ("the noise in noise_scale", False),
        ("None where it is null", False),
        ("as `Microdata` makes them", False),
        ("drawn by DiscreteLaplace", False),
        ("noise,  before rounding", False),
        ("cells that hold nobody", False),
    ],
)
def test_a_wrong_text_is_found(text: str, weighted: bool):
    assert list(faults(Text("here", text, frozenset({"count", "noisy_count"}), weighted)))


def test_a_text_may_name_the_columns_that_are_published_with_it():
    text = "Root mean squared error of count, where noisy_count is above the threshold"
    for weighted in (True, False):
        assert not list(faults(Text("", text, frozenset({"count", "noisy_count"}), weighted)))
