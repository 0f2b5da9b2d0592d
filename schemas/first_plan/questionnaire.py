"""A questionnaire as a CSV file: what it says of each column becomes that column of a first plan.

    column,description,type,values,lower,upper,step,unit,missing,special
    SEX,Sex,,1=female; 2=male,,,,,,
    AGE,Age at the interview,,,16,99,,years,,
    PAY,Gross weekly pay,,,0,5000,0.01,pounds,-9; empty,400

Only ``column`` is needed; a cell is empty where there is nothing to say.  ``values`` alone make a
column categorical; ``lower`` and ``upper`` make it one of whole numbers, with ``values`` as labels, or
of real ones if they or ``step`` have a decimal point.  ``type`` overrules this, and says ``date`` or
``time`` of a column whose parts are released, between the years ``lower`` and ``upper``.  ``missing``
are codes that stand for no answer, which ``values`` may name too, and the word ``empty`` where a cell
may be empty.  ``special`` are numbers that many people have, such as a minimum wage or a top code: each
gets a cell of its own, as zero does.  ``label`` is what readers call the column.  The word ``open``
under ``values`` makes a column of categories that nobody can list, which the release finds.

Three types say that a column is not published: ``unit`` that its value is the same in all records of one
person or household (``upper``: how many at most), ``weight`` that it says for how many people of the
population a record stands (``upper``: larger ones count as this one; ``step``: to what they are
rounded), ``ignored`` that it is an identifier or free text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dpcore.errors import InputError
from dpcore.suggestion import suggestion
from schemas.first_plan.cells import Numbers
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
)
TYPES = ("categorical", "integer", "continuous", "date", "time")
ROLES = ("unit", "weight", "ignored")
"""Types of columns that a plan does not describe."""
EMPTY = "empty"


@dataclass(frozen=True)
class Question:
    """What is said of one column: its keys in a plan but for ``type``, and what its numbers may be.
    Of a column that a plan does not describe (``ROLES``), ``upper`` and ``step``."""

    type: str
    keys: Mapping[str, Any]
    numbers: Numbers | None = None


def read_questionnaire(path: Path) -> dict[str, Question]:
    """The questions by column, in their order.

    Raises ``InputError``, which names line and cell, where one cannot be read or contradicts another.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be opened: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path}: cannot be read as UTF-8; a spreadsheet saves it as 'CSV UTF-8'"
        ) from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    names = [name.strip().lower() for name in rows.fieldnames or ()]
    for name in names:
        if name not in HEADER:
            raise InputError(
                f"{path}, line 1: {name!r} is not one of {', '.join(HEADER)}{suggestion(name, HEADER)}"
            )
    if "column" not in names:
        raise InputError(
            f"{path}, line 1: has no `column`; the first line must be of {', '.join(HEADER)}"
        )
    rows.fieldnames = names
    found: dict[str, Question] = {}
    faults: list[str] = []
    for row in rows:
        place = f"{path}, line {rows.line_num}"
        if None in row:
            raise InputError(
                f"{place}: has more cells than the first line; quote text with {delimiter!r}"
            )
        said = {key: (value or "").strip() for key, value in row.items()}
        name = said.pop("column")
        if not any([name, *said.values()]):
            continue
        if not name or name in found:
            raise InputError(
                f"{place}: {f'{name!r} is there twice' if name else 'names no column'}"
            )
        try:
            found[name] = _question(f"{place} ({name})", said)
        except InputError as fault:
            faults.append(str(fault))
            found[name] = Question("", {})
    for role in ("unit", "weight"):
        if len(several := [repr(name) for name, of in found.items() if of.type == role]) > 1:
            faults.append(f"{path}: {' and '.join(several)} are each a {role}; a plan has one")
    if faults:
        raise InputError("\n".join(faults))
    return found


def _question(place: str, said: Mapping[str, str]) -> Question:
    def number(key: str) -> Decimal | None:
        if not said.get(key):
            return None
        with suppress(InvalidOperation):
            if (found := Decimal(said[key])).is_finite():
                return found
        raise InputError(f"{place}, {key}: {said[key]!r} is not a number such as 0.5")

    lower, upper, step = number("lower"), number("upper"), number("step")
    if step is not None and step <= 0:
        raise InputError(f"{place}, step: {step} is not above 0")
    no_answer = [code for code, _ in _values(place, said.get("missing", ""))]
    values = {
        code: label
        for code, label in _values(place, said.get("values", ""))
        if code not in no_answer
    }
    given = [amount for amount in (lower, upper, step) if amount is not None]
    whole = all(amount == amount.to_integral_value() for amount in given)
    written = any("." in said.get(key, "") for key in ("lower", "upper", "step"))
    bounded = lower is not None or upper is not None
    guess = (
        "categorical"
        if values and not bounded
        else "integer"
        if whole and not written
        else "continuous"
    )
    kind = said.get("type") or guess
    if kind == "integer" and values and not bounded:  # as codebooks call codes
        kind = "categorical"
    if kind not in (*TYPES, *ROLES):
        raise InputError(
            f"{place}, type: {kind!r} is not one of {', '.join((*TYPES, *ROLES))}"
            f"{suggestion(kind, (*TYPES, *ROLES))}"
        )
    if kind in ROLES:
        return Question(kind, {"upper": upper, "step": step})
    keys: dict[str, Any] = {}
    numbers = None
    if kind == "categorical" and said.get("values") == OPEN:
        keys["categories"], values = OPEN, {}
    elif kind == "categorical":
        if not values:
            raise InputError(
                f"{place}, values: list them, such as 1=yes; 2=no, or state lower and upper, or write"
                f" {OPEN} where nobody can list them; an identifier or free text, which is not"
                " published, has the type `ignored`"
            )
        if len(values) == 1 and re.search(r"\w\s*[\s,/|]\s*\w", next(iter(values))):
            raise InputError(
                f"{place}, values: {next(iter(values))!r} is one value, as only ; separates them; if it"
                " is meant as one, state another one, as a column of one value says nothing"
            )
        keys["categories"] = _codes(list(values))
    else:
        dated = kind in ("date", "time")
        if lower is None or upper is None or lower > upper or (lower == upper and not dated):
            what = (
                "lower and upper, two years"
                if dated
                else "lower and upper, the smaller first, or values"
            )
            raise InputError(f"{place}: state {what}")
        if kind != "continuous" and not whole:
            raise InputError(f"{place}: {kind} has whole bounds and steps")
        cast: type[int | float] = float if kind == "continuous" else int
        keys["bounds"] = [cast(lower), cast(upper)]
        keys |= (
            {"step": cast(step)}
            if step is not None and not (kind == "integer" and step == 1)
            else {}
        )
        if beyond := [code for code in values if not _within(code, lower, upper)]:
            raise InputError(
                f"{place}, values: {beyond[0]!r} lies outside {lower} to {upper}; if it means no"
                " answer, put it under missing"
            )
        special = [code for code, _ in _values(place, said.get("special", ""))]
        if odd := [code for code in special if not _within(code, lower, upper)]:
            raise InputError(
                f"{place}, special: {odd[0]!r} is not a number from {lower} to {upper}"
            )
        if not dated:
            alone = [Decimal(code) for code in (*special, *values)]
            unit = said.get("unit", "")
            numbers = Numbers(lower, upper, step, kind == "integer", alone, unit)
    labels = {code: label for code, label in values.items() if label}
    keys |= {"labels": labels} if labels else {}
    missing = _codes([code for code in no_answer if code != EMPTY], together=False)
    keys |= {"nullable": True} if EMPTY in no_answer else {}
    keys |= {"missing": missing} if missing else {}
    if said.get("unit") and kind != "categorical":
        keys["unit"] = said["unit"]
    keys |= {key: said[key] for key in ("label", "description") if said.get(key)}
    return Question(kind, keys, numbers)


def _values(place: str, text: str) -> Iterator[tuple[str, str]]:
    """Each code with its label, of ``1=female; 2=male``."""
    codes = set[str]()
    for item in filter(None, (part.strip() for part in text.split(";"))):
        code, _, label = item.partition("=")
        if not code.strip():
            raise InputError(f"{place}: {item!r} has no code before the =")
        if re.search(r"[|,]\s*[^=|,]+=", item):
            raise InputError(f"{place}: {item!r} seems to be several values; separate them by ;")
        if code.strip() in codes:
            raise InputError(f"{place}: the code {code.strip()!r} is there twice")
        codes.add(code.strip())
        yield code.strip(), label.strip()


def _within(code: str, lower: Decimal, upper: Decimal) -> bool:
    try:
        return lower <= Decimal(code) <= upper
    except InvalidOperation:
        return False


def _codes(codes: list[str], together: bool = True) -> list[str | int]:
    """Codes as whole numbers where they are written as such: all of them, or (not together) each."""
    whole = [re.fullmatch(r"0|-?[1-9]\d{0,17}", code) is not None for code in codes]
    if together:
        whole = [all(whole)] * len(codes)
    return [int(code) if number else code for code, number in zip(codes, whole, strict=True)]
