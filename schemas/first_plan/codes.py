"""Reads a cell of a questionnaire: a number, or codes with their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation

from dpcore.errors import InputError
from dpcore.suggestion import suggestion
from schemas.survey.found import OPEN

_AMBIGUOUS = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")
"""Text that is a whole number if its point separates thousands."""

_SEPARATED = re.compile(r"-?\d+((\.\d{3})*,\d+|(\.\d{3}){2,})")
"""Text with a decimal comma, or with several points, which then separate thousands."""


def read_number(place: str, text: str, form: str) -> Decimal:
    """A number with a decimal point; ``form``: the survey's format, in which it may be written."""
    separates = form.startswith("1.234")
    if separates and _AMBIGUOUS.fullmatch(text):
        whole = text.replace(".", "")
        raise InputError(
            f"{place}: {text!r} is ambiguous; write {whole}, or {text}0 if the point is a decimal point"
        )
    with suppress(InvalidOperation):
        if (found := Decimal(text)).is_finite():
            return found
    meant = suggestion(text, [OPEN])
    if text.endswith("%"):
        meant = "; 12% is written 0.12"
    elif _SEPARATED.fullmatch(text):
        number = text.replace(".", "").replace(",", ".")
        meant = f"; write {number}{'0' * bool(separates and _AMBIGUOUS.fullmatch(number))}"
    raise InputError(f"{place}: {text!r} is not a number such as 0.5{meant}")


_QUOTED = r'"(?:[^"]|"")*"'
_ITEM = re.compile(rf"\s*({_QUOTED}|[^;=]*?)\s*(?:=\s*({_QUOTED}|[^;]*?)\s*)?(?:;|$)")


def read_values(place: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each code with its label, from text such as ``1=female; 2="male; other"``."""
    codes = set[str]()
    for item in _ITEM.finditer(text):
        written = item[0].strip().removesuffix(";")
        code, label = (_unquoted(place, part or "") for part in item.groups())
        if not written:
            continue
        if not code:
            raise InputError(f"{place}: {written!r} has no code before the sign =")
        if '"' not in written and re.search(r"[|,]\s*[^=|,]+=", written):
            raise InputError(f"{place}: {written!r} seems to be several values; separate them by ;")
        if code in codes:
            raise InputError(f"{place}: the code {code!r} is listed twice")
        codes.add(code)
        yield code, label


def _unquoted(place: str, part: str) -> str:
    if re.fullmatch(_QUOTED, part):
        return part[1:-1].replace('""', '"').strip()
    if part.startswith('"') and part.count('"') % 2:
        raise InputError(f"{place}: the quotation mark of {part!r} is not closed")
    return part


def as_codes(codes: list[str], together: bool = True) -> list[str | int]:
    """Convert codes to whole numbers if all are whole; if not ``together``, each one that is."""
    whole = [re.fullmatch(r"0|-?[1-9]\d{0,17}", code) is not None for code in codes]
    if together:
        whole = [all(whole)] * len(codes)
    return [int(code) if number else code for code, number in zip(codes, whole, strict=True)]
