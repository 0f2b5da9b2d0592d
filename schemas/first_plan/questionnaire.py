"""Reads a questionnaire, a CSV file that describes each column for a first plan.

    column,description,type,values,lower,upper,step,unit,missing,special
    SEX,Sex,,1=female; 2=male,,,,,,
    AGE,Age at the interview,,,16,99,,years,,
    PAY,Gross weekly pay,,,0,5000,0.01,pounds,-9; empty,400

Only ``column`` is required; other cells may be empty. ``values`` alone make a column categorical.
``lower`` and ``upper`` make it a column of whole numbers, with ``values`` as labels, or of real numbers
if they or ``step`` have a decimal point. ``type`` overrules this; ``date`` and ``time`` are for columns
whose parts are released, between the years ``lower`` and ``upper``. ``missing`` lists codes for no
answer, which ``values`` may name too, and the word ``empty`` if cells may be empty. ``special`` lists
numbers that many people have, such as a minimum wage or a top code: like zero, each gets a separate
cell. ``levels`` lists all numbers that occur, if they are few, instead of bounds. ``format`` is the
survey's format of numbers or dates, as in a plan. ``label`` is the column's name for readers.
``universe`` is the condition under which people were asked, such as ``AGE >= 16 and WORKS = 1``: for all
others the answer is missing; a code under ``missing`` with the label ``not asked`` means only this. In
``"a; b"=both; c`` the first value contains a semicolon. The word ``open`` means that the release finds
the categories (under ``values``) or the bounds (under ``lower`` and ``upper``), because nobody can state
them.

Columns of three types are not published: ``unit`` identifies the records of one person or household
(``upper``: their largest number), ``weight`` is the number of people that a record represents
(``upper``: larger weights count as this one; ``step``: weights are rounded to its multiples), and
``ignored`` is an identifier or free text.

Three types state the role of a column that is described like any other: ``stratum`` is the group within
which the survey was drawn, ``cluster`` the cluster that was drawn, and ``period`` the period of a series
to which a record belongs.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dpcore.errors import InputError
from dpcore.suggestion import suggestion
from schemas.first_plan.codes import as_codes, read_number, read_values
from schemas.first_plan.question import Question
from schemas.first_plan.universe import read_universe, with_universes
from schemas.survey.cells import Numbers
from schemas.survey.formats import date_format, number_format
from schemas.survey.found import OPEN

HEADER = (
    "column",
    "label",
    "description",
    "type",
    "values",
    "lower",
    "upper",
    "step",
    "unit",
    "missing",
    "special",
    "levels",
    "format",
    "universe",
)
TYPES = ("categorical", "integer", "continuous", "date", "time")
DATES = ("date", "time")
ROLES = ("unit", "weight", "ignored")
"""Types of columns that a plan does not publish."""
CODES = ("values", "levels", "special", "missing")
"""Fields of codes, which a weight cannot have."""
DESIGN = {"stratum": "strata", "cluster": "cluster"}
"""Types of columns that a plan publishes, with the plan's key that also names the column."""
PERIOD = "period"
MARKS = (*DESIGN, PERIOD)
"""Types that state the role of a column, in addition to its description."""
EMPTY = "empty"
NOT_ASKED = "not asked"
FREE_TEXT = "; an identifier or free text, which is not published, has the type `ignored`"


def read_questionnaire(path: Path) -> dict[str, Question]:
    """The questions by column, in their order.

    Raises ``InputError``, with line and cell, if a question cannot be read or contradicts another.
    """
    try:
        # Spreadsheets begin UTF-8 with a mark, which would become part of the first column's name.
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be opened: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path}: cannot be read as UTF-8; save it from the spreadsheet as 'CSV UTF-8'"
        ) from None
    # If decimals have a comma, spreadsheets separate the cells of CSV by semicolons.
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    with _quoted_as_csv(rows, path):
        names = [name.strip().lower() for name in rows.fieldnames or ()]
        rows.fieldnames = names
        lines = [(rows.line_num, row) for row in rows]
    for name in names:
        if name not in HEADER:
            raise InputError(
                f"{path}, line 1: {name!r} is not one of {', '.join(HEADER)}{suggestion(name, HEADER)}"
            )
    if "column" not in names:
        raise InputError(
            f"{path}, line 1: has no `column`; the first line must contain names from"
            f" {', '.join(HEADER)}"
        )
    found: dict[str, Question] = {}
    faults: list[str] = []
    for line, row in lines:
        place = f"{path}, line {line}"
        if None in row:
            raise InputError(
                f"{place}: has more cells than the first line; put quotation marks around a cell that"
                f" contains {delimiter}"
            )
        said = {key: (value or "").strip() for key, value in row.items()}
        name = said.pop("column")
        if not any([name, *said.values()]):
            continue
        if not name or name in found:
            raise InputError(
                f"{place}: {f'{name!r} is described twice' if name else 'names no column'}"
            )
        try:
            found[name] = _question(f"{place} ({name})", said)
        except InputError as fault:
            faults.append(str(fault))
            # Stored even if it is at fault, so that a second line on this column is found.
            found[name] = Question("", {})
    for role in ("unit", "weight", *MARKS):
        several = [repr(n) for n, of in found.items() if role in (of.type, of.role)]
        if len(several) > 1:
            faults.append(f"{path}: {' and '.join(several)} are each a {role}; a plan has one")
    if faults:
        raise InputError("\n".join(faults))
    try:
        return with_universes(found)
    except InputError as fault:
        raise InputError(f"{path}, {fault}") from None


UNQUOTED = "; if the cell before it contains a separator, put quotation marks around that cell"


@contextmanager
def _quoted_as_csv(rows: csv.DictReader[str], path: Path) -> Iterator[None]:
    try:
        yield
    except csv.Error:
        raise InputError(
            f"{path}, line {rows.line_num + 1}: a cell that begins with a quotation mark must end with"
            ' one; double quotation marks inside it, as in """a; b""; c"'
        ) from None


def _question(place: str, said: Mapping[str, str]) -> Question:
    unbounded = OPEN in (said.get("lower"), said.get("upper"))

    def number(key: str) -> Decimal | None:
        if not said.get(key) or said[key] == OPEN:
            return None
        try:
            return read_number(f"{place}, {key}", said[key], said.get("format", ""))
        except InputError:
            if said.get("type") not in DATES or key == "step":
                raise
            raise InputError(
                f"{place}, {key}: {said[key]!r} is not a year; dates lie between two whole years, such"
                " as 2024 and 2025"
            ) from None

    def listed(key: str) -> dict[str, str]:
        return dict(read_values(f"{place}, {key}", said.get(key, "")))

    lower, upper, step = number("lower"), number("upper"), number("step")
    if step is not None and step <= 0:
        raise InputError(f"{place}, step: {step} is not above 0")
    no_answer, levels = listed("missing"), listed("levels")
    if {code.lower() for code in no_answer} in ({"yes"}, {"no"}):
        raise InputError(
            f"{place}, missing: write the codes that mean no answer, such as NA or -9, or {EMPTY} for"
            " empty cells; leave it empty if every record has an answer"
        )
    values = {c: label for c, label in listed("values").items() if c not in no_answer}
    given = [amount for amount in (lower, upper, step) if amount is not None]
    whole = all(amount == amount.to_integral_value() for amount in given)
    if step is None and said.get("special") and given and max(given) - min(given) <= 1:
        whole = False  # a share: whole numbers would have none between special values
    written = any("." in said.get(key, "") for key in ("lower", "upper", "step", "levels"))
    bounded = unbounded or lower is not None or upper is not None or bool(levels)
    guess = (
        "categorical"
        if values and not bounded
        else "integer"
        if whole and not written and not unbounded
        else "continuous"
    )
    kind = said.get("type") or guess
    role = kind if kind in MARKS else ""
    kind = guess if role else kind
    if role == PERIOD and step not in (None, Decimal(1)):
        raise InputError(
            f"{place}, step: list the periods under `levels` instead, such as 2020; 2022"
        )
    if kind == "integer" and values and not bounded:  # the word for codes in codebooks
        kind = "categorical"
    if kind not in (types := (*TYPES, *ROLES, *MARKS)):
        raise InputError(
            f"{place}, type: {kind!r} is not one of {', '.join(types)}"
            f"{suggestion(kind, types) or (UNQUOTED if ' ' in kind else FREE_TEXT)}"
        )
    if kind in ROLES and said.get("universe"):
        raise InputError(f"{place}, universe: leave it empty, because the column is not published")
    if kind == "weight" and (coded := [key for key in CODES if said.get(key)]):
        raise InputError(
            f"{place}, {coded[0]}: leave it empty, because every number is a weight. In the table, leave"
            " missing weights empty; `invalid` in the plan then says what happens to their records"
        )
    if kind in ROLES:
        form = _format(f"{place}, format", said.get("format", ""), kind) if kind == "weight" else {}
        return Question(kind, {"upper": upper, "step": step, **form})
    keys: dict[str, Any]
    numbers = None
    if unbounded:
        kind, keys = "continuous", _unbounded(place, kind, said, (lower, upper), step)
    elif kind == "categorical" and said.get("values") == OPEN:
        keys, values = {"categories": OPEN}, {}
    elif kind == "categorical":
        keys = _categories(place, values)
    elif levels and kind in ("integer", "continuous"):
        if more := [key for key in ("lower", "upper", "step", "special") if said.get(key)]:
            raise InputError(
                f"{place}, {more[0]}: leave it empty, because `levels` lists all values"
            )
        keys, values = _levels(place, kind, levels, values)
    else:
        special = [*listed("special")]
        keys, numbers = _between(place, kind, (lower, upper, step), special, [*values])
        if numbers:
            numbers = replace(numbers, unit=said.get("unit", ""))
    labels = {code: label for code, label in values.items() if label}
    keys |= {"labels": labels} if labels else {}
    missing = as_codes([code for code in no_answer if code != EMPTY], together=False)
    keys |= {"nullable": True} if EMPTY in no_answer else {}
    keys |= {"missing": missing} if missing else {}
    keys |= _format(f"{place}, format", said.get("format", ""), kind)
    if said.get("unit") and kind != "categorical":
        keys["unit"] = said["unit"]
    keys |= {key: said[key] for key in ("label", "description") if said.get(key)}
    universe = read_universe(f"{place}, universe", said.get("universe", ""))
    if universe and kind in DATES:
        raise InputError(
            f"{place}, universe: the parts of a date cannot be missing; leave it empty"
        )
    if universe and "description" in keys:  # at the end: the first clause is a name
        keys["description"] = f"{keys['description']} (asked where {said['universe']})"
    answered = all(why.lower() == NOT_ASKED for why in no_answer.values())
    return Question(kind, keys, numbers, role, universe, answered)


def _categories(place: str, values: Mapping[str, str]) -> dict[str, Any]:
    if not values:
        raise InputError(
            f"{place}, values: list them, such as 1=yes; 2=no, or state lower and upper, or write"
            f" {OPEN} if nobody knows them{FREE_TEXT}"
        )
    first = next(iter(values))
    if len(values) == 1 and re.search(r"\w\s*[\s,/|]\s*\w", first):
        raise InputError(
            f"{place}, values: {first!r} is read as a single value, because only ; separates values. If"
            " it is one, add another: a column with a single value carries no information"
        )
    return {"categories": as_codes(list(values))}


def _unbounded(
    place: str,
    kind: str,
    said: Mapping[str, str],
    stated: tuple[Decimal | None, Decimal | None],
    step: Decimal | None,
) -> dict[str, Any]:
    """The plan's keys for numbers with bounds found by a release; whole numbers get step 1."""
    for key in ("lower", "upper"):
        if not said.get(key):
            raise InputError(f"{place}, {key}: write a number, or {OPEN} here too")
    if kind not in ("integer", "continuous"):
        raise InputError(f"{place}, lower: only numbers can have {OPEN} bounds")
    if more := [key for key in ("values", "levels") if said.get(key)]:
        raise InputError(f"{place}, {more[0]}: leave it empty, as the bounds are {OPEN}")
    points = list[float]()
    for code, _ in read_values(f"{place}, special", said.get("special", "")):
        try:
            points.append(float(code))
        except ValueError:
            raise InputError(f"{place}, special: {code!r} is not a number") from None
    half = [OPEN if bound is None else float(bound) for bound in stated]
    keys: dict[str, Any] = {"bounds": OPEN if half == [OPEN, OPEN] else half}
    if step or kind == "integer":
        keys["step"] = float(step or 1)
    return keys | ({"point_masses": sorted(points)} if points else {})


def _levels(
    place: str, kind: str, levels: Mapping[str, str], values: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The key ``levels``, and labels by level; ``values`` may also give labels."""
    cast: Callable[[str], float] = int if kind == "integer" else float
    found: dict[float, str] = {}
    for code in levels:
        level = math.nan
        with suppress(ValueError):
            level = cast(code)
        if not math.isfinite(level):
            what = "whole number" if kind == "integer" else "number such as 0.5"
            raise InputError(f"{place}, levels: {code!r} is not a {what}")
        found[level] = code
    if beyond := [code for code in values if code not in levels]:
        raise InputError(f"{place}, values: {beyond[0]!r} is not one of the levels")
    labels = {**levels, **values}
    return {"levels": sorted(found)}, {str(level): labels[code] for level, code in found.items()}


def _between(
    place: str,
    kind: str,
    limits: Sequence[Decimal | None],
    special: Sequence[str],
    values: Sequence[str],
) -> tuple[dict[str, Any], Numbers | None]:
    """The plan's keys for numbers between ``limits``, with a step, or for dates between two years."""
    lower, upper, step = limits
    dated = kind in DATES
    if lower is None or upper is None or lower > upper or (lower == upper and not dated):
        what = "two years" if dated else "the smaller first, or values"
        raise InputError(f"{place}: state lower and upper, {what}")
    if kind != "continuous" and any(n and n != n.to_integral_value() for n in limits):
        raise InputError(f"{place}: {kind} needs whole numbers as lower, upper and step")
    cast: type[int | float] = float if kind == "continuous" else int
    keys: dict[str, Any] = {"bounds": [cast(lower), cast(upper)]}
    if step is not None and not (kind == "integer" and step == 1):
        keys["step"] = cast(step)
    unit = step or (Decimal(1) if kind == "integer" else None)
    if beyond := [code for code in values if not _within(code, lower, upper)]:
        raise InputError(
            f"{place}, values: {beyond[0]!r} is outside {lower} to {upper}; if it means no answer, put"
            " it under missing"
        )
    if odd := [code for code in special if not _within(code, lower, upper)]:
        raise InputError(f"{place}, special: {odd[0]!r} is not a number from {lower} to {upper}")
    for key, codes in (("special", special), ("values", values)):
        if odd := [code for code in codes if unit and Decimal(code) % unit]:
            raise InputError(
                f"{place}, {key}: {odd[0]!r} is not a multiple of the step, {unit}; state a step of"
                " which all values are multiples"
            )
    alone = [Decimal(code) for code in (*special, *values)]
    return keys, None if dated else Numbers(lower, upper, step, kind == "integer", alone)


def _format(place: str, form: str, kind: str) -> dict[str, str]:
    if not form:
        return {}
    if kind == "categorical":
        raise InputError(
            f"{place}: is for numbers and dates; categories are read as they are written"
        )
    try:
        (date_format if kind in DATES else number_format)(form)
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None
    return {"format": form}


def _within(code: str, lower: Decimal, upper: Decimal) -> bool:
    try:
        return lower <= Decimal(code) <= upper
    except InvalidOperation:
        return False
