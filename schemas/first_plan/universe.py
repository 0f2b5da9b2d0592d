"""Turns the universe of a question (the people who were asked) into rules for synthetic records.

    HOURS   AGE >= 16 and WORKS = 1      missing where AGE < 16, and where WORKS has another value
    RENT    TENURE = 2 or 3

Outside its universe a column is missing in every record. Inside, it is never missing, unless the
questionnaire has codes under ``missing`` that do not mean "not asked".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import pairwise, product
from typing import Any

from dpcore.errors import InputError
from dpcore.suggestion import suggestion
from schemas.first_plan.question import AskedIf, Question
from schemas.survey.cells import MOST_VALUES, Numbers
from schemas.survey.found import OPEN

Stated = list[Any] | dict[str, int]
"""A condition of a rule in a plan: values, or a range ``from`` and ``below``."""

SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_CONDITION = re.compile(r"(.+?)\s*(<=|>=|!=|==|<|>|=)\s*(.+)")
_OUTSIDE_QUOTES = r'(?=(?:[^"]*"[^"]*")*[^"]*$)'
_AND, _OR = (re.compile(rf"\s+{word}\s+{_OUTSIDE_QUOTES}", re.I) for word in ("and", "or"))


def read_universe(place: str, text: str) -> list[AskedIf]:
    """The conditions in a text; all must be true.

    >>> [tuple(each) for each in read_universe("line 2", "WORKS = 1 or 2 and AGE >= 16")]
    [('WORKS', '=', ['1', '2']), ('AGE', '>=', ['16'])]
    """
    found = list[AskedIf]()
    for part in _AND.split(text) if text else ():
        if not (match := _CONDITION.fullmatch(part)):
            raise InputError(
                f"{place}: {part!r} is not a condition such as AGE >= 16, or WORKS = 1 or 2; leave the"
                " cell empty if everybody was asked"
            )
        column, sign, after = match.groups()
        values = [re.sub('^"(.*)"$', r"\1", each) for each in _OR.split(after)]
        if len(values) > 1 and sign not in ("=", "==", "!="):
            raise InputError(f"{place}: {part!r} has several values; only = and != may")
        found.append(AskedIf(column, sign.replace("==", "="), values))
    return found


def with_universes(questions: Mapping[str, Question]) -> dict[str, Question]:
    """The questions; columns with a universe become nullable, and limits in conditions become edges.

    Raises ``InputError`` if a condition uses values that the questionnaire does not describe, or
    excludes everybody.
    """
    found = {**questions}
    known: dict[str, tuple[AskedIf, ...]] = {}
    for name, question in questions.items():
        conditions = _with_those_before(questions, name, (), known)
        for column, each in _by_column(conditions).items():
            about = found[column]
            sides = _sides(about, each, f"{name}, universe: {column}")
            # If there are fewer values, each has a cell, so every limit is an edge already.
            if about.numbers and about.numbers.number > MOST_VALUES:
                ranges = (side for part in sides for side in part if isinstance(side, dict))
                starts = {Decimal(side["from"]) for side in ranges if "from" in side}
                cuts = sorted(starts.union(about.numbers.cuts))
                found[column] = replace(about, numbers=replace(about.numbers, cuts=cuts))
        if question.universe and "missing" not in question.keys:
            own = found[name]
            found[name] = replace(own, keys={**own.keys, "nullable": True})
    return found


def _with_those_before(
    questions: Mapping[str, Question],
    name: str,
    chain: Sequence[str],
    known: dict[str, tuple[AskedIf, ...]],
) -> tuple[AskedIf, ...]:
    """The conditions of a column and, recursively, of the columns in these conditions, each once.

    ``chain``: the columns whose conditions led to this one; ``known``: a cache of conditions by column,
    filled here.
    """
    if name in known:
        return known[name]
    found: dict[str, AskedIf] = {}
    for condition in questions[name].universe:
        column, path = condition.column, [*chain, name]
        if column not in questions:
            near = suggestion(column, [*questions])
            raise InputError(f"{name}, universe: {column!r} is not another column{near}")
        if column in path:
            circle = " -> ".join([*path[path.index(column) :], column])
            raise InputError(f"{name}, universe: {column} depends on its own answer ({circle})")
        before = _with_those_before(questions, column, path, known)
        found |= {repr(each): each for each in (condition, *before)}
    known[name] = tuple(found.values())
    return known[name]


def require_published(questions: Mapping[str, Question], published: Collection[str]) -> None:
    """Raise ``InputError`` if a universe names a column that the records do not have."""
    for name in published:
        for condition in questions[name].universe if name in questions else ():
            if condition.column not in published:
                raise InputError(
                    f"{name}, universe: the plan has no column {condition.column!r}; leave that"
                    " condition out"
                )


def universe_rules(
    questions: Mapping[str, Question], columns: Collection[str]
) -> list[dict[str, dict[str, Stated]]]:
    """The rules for synthetic records of these columns: one for each condition."""
    found: list[dict[str, dict[str, Stated]]] = []
    for when, name, then in _implied(questions, columns):
        same = next((rule for rule in found if rule["if"] == when), None)
        if same is None:
            found.append({"if": when, "then": {name: then}})
        else:
            same["then"][name] = then
    return found


def _implied(
    questions: Mapping[str, Question], columns: Collection[str]
) -> Iterator[tuple[dict[str, Stated], str, Stated]]:
    """Yield rules: conditions on other columns, a column, and its possible values under them."""
    for name in columns:
        question = questions.get(name) or Question("", {})
        stated = _by_column(question.universe)
        asked = {
            column: _sides(questions[column], conditions, name)
            for column, conditions in stated.items()
            if column in columns
        }
        for column, (_, outside) in asked.items():
            # A missing answer fails every condition, so people without an answer were not asked.
            unknown: list[Stated] = [[None]] if questions[column].universe else []
            for each in (*outside, *unknown):
                yield {column: each}, name, [None]
        if (answers := _answers(question)) and asked.keys() == stated.keys() != set():
            for inside in product(*(inside for inside, _ in asked.values())):
                yield dict(zip(asked, inside, strict=True)), name, answers


def _by_column(conditions: Sequence[AskedIf]) -> dict[str, list[AskedIf]]:
    found: dict[str, list[AskedIf]] = {}
    for condition in conditions:
        found.setdefault(condition.column, []).append(condition)
    return found


def _answers(question: Question) -> Stated | None:
    """All values except null. None if null is a possible answer, or if nobody can list the values."""
    keys = question.keys
    if not question.answered or OPEN in (keys.get("categories"), keys.get("bounds")):
        return None
    if "categories" in keys:
        return [*keys["categories"]]
    first = keys["levels"][0] if "levels" in keys else keys["bounds"][0]
    return None if first == OPEN else {"from": first}


def _sides(
    question: Question, conditions: Sequence[AskedIf], place: str
) -> tuple[list[Stated], list[Stated]]:
    """The values or ranges that satisfy all conditions on a column, and all others."""
    values = question.keys.get("categories", question.keys.get("levels", OPEN))
    inside: list[Stated]
    outside: list[Stated]
    if values != OPEN:
        tests = [_test_of(condition, values, place) for condition in conditions]
        kept = [value for value in values if all(test(value) for test in tests)]
        inside, outside = [kept] if kept else [], [[v for v in values if v not in kept]]
        outside = [each for each in outside if each]
    elif question.type == "integer" and question.numbers:
        inside, outside = _ranges(question.numbers, conditions, place)
    else:
        raise InputError(
            f"{place} has no listed categories, levels, or whole numbers between bounds"
        )
    if not inside:
        raise InputError(f"{place}: no value is left")
    return inside, outside


def _test_of(condition: AskedIf, values: Sequence[Any], place: str) -> Callable[[Any], bool]:
    """A function that tests a category or level by a condition; values are ordered as numbers."""
    named = [_listed(text, values, place) for text in condition.values]
    if condition.sign in ("=", "!="):
        return lambda value: (value in named) == (condition.sign == "=")
    if any(isinstance(each, str | bool) for each in values):
        raise InputError(f"{place}: its values are not numbers; use = or !=")
    return lambda value: SIGNS[condition.sign](value, named[0])


def _listed(text: str, values: Sequence[Any], place: str) -> Any:
    for value in values:
        if text in (str(value), f"{value:g}" if isinstance(value, float) else str(value)):
            return value
    raise InputError(
        f"{place}: {text!r} is not one of its values{suggestion(text, map(str, values))}"
    )


def _ranges(
    numbers: Numbers, conditions: Sequence[AskedIf], place: str
) -> tuple[list[Stated], list[Stated]]:
    unit, top = numbers.step_or_one or Decimal(1), numbers.upper + 1
    cuts, tests = {numbers.lower, top}, list[tuple[str, list[Decimal]]]()
    for condition in conditions:
        stated = [_multiple(text, numbers, unit, place) for text in condition.values]
        tests.append((condition.sign, stated))
        at, after = condition.sign not in (">", "<="), condition.sign not in (">=", "<")
        cuts |= {n for n in stated if at} | {n + unit for n in stated if after}
    spans: list[tuple[bool, Decimal, Decimal]] = []
    for first, end in pairwise(sorted(cut for cut in cuts if numbers.lower <= cut <= top)):
        holds = all(
            (all if sign == "!=" else any)(SIGNS[sign](first, number) for number in stated)
            for sign, stated in tests
        )
        if spans and spans[-1][0] is holds:
            first = spans.pop()[1]
        spans.append((holds, first, end))

    def sides(wanted: bool) -> list[Stated]:
        return [
            {
                **({"from": int(first)} if first > numbers.lower or end == top else {}),
                **({"below": int(end)} if end < top else {}),
            }
            for holds, first, end in spans
            if holds is wanted
        ]

    return sides(True), sides(False)


def _multiple(text: str, numbers: Numbers, unit: Decimal, place: str) -> Decimal:
    with suppress(InvalidOperation):
        number = Decimal(text)
        if number.is_finite() and numbers.lower <= number <= numbers.upper and number % unit == 0:
            return number
    raise InputError(
        f"{place}: {text!r} is not a multiple of {unit} from {numbers.lower} to {numbers.upper}"
    )
