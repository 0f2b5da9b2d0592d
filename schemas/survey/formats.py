"""A survey's formats of numbers and dates in text, by the key ``format`` of a column.

    format: 1.234,5       1234.5 as the survey writes it, with thousands separated or not; others are
                          1,234.5  1 234,5  1'234.5  1234,5
    format: 12%           12% is read as 0.12; also 1.234,5%
    format: DD.MM.YYYY    31.12.2024, or 1.2.2024, and a time after it, as in 31.12.2024 17:30
    format: YYYYMMDD      20241231

The result of reading a text depends only on the text and the format. Text in another form is not read.
Values stored as numbers or dates need no format and ignore it.

>>> number_format("1.234,5").pattern.startswith("[+-]?")
True
>>> date_format("DD.MM.YYYY").order
('D', 'M', 'Y')
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictStr

from schemas.document import absent

BLANKS = " \u00a0\u2009\u202f"
TRIMMED = " \t\n\r\v\f"
"""Blanks allowed around a value."""
LIKE = {" ": BLANKS, "'": "'’"}
TIME = "([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]+)?)?Z?)"
"""A time after a day."""


@dataclass(frozen=True)
class NumberFormat:
    """``thousands``: characters that may separate thousands; ``decimal``: the decimal sign."""

    thousands: str
    decimal: str
    percent: bool

    @property
    def pattern(self) -> str:
        """A regular expression for numbers, valid in all engines; at most 18 digits on each side."""
        whole = "[0-9]{1,18}"
        if self.thousands:
            whole = f"([0-9]{{1,3}}([{self.thousands}][0-9]{{3}}){{1,5}}|{whole})"
        fraction = f"[{self.decimal}][0-9]{{1,18}}"
        return f"[+-]?({whole}({fraction}|[{self.decimal}])?|{fraction}){self._sign}"

    @property
    def _sign(self) -> str:
        return f"[{BLANKS}]?%" if self.percent else ""

    @property
    def dropped(self) -> str:
        """The characters to remove before the text is read as a number."""
        return self.thousands + f"{BLANKS}%" * self.percent

    @property
    def shift(self) -> str:
        """The exponent to append to the digits: only in text is a division by a hundred exact."""
        return "e-2" if self.percent else ""


PLAIN = NumberFormat("", ".", False)


@dataclass(frozen=True)
class DateFormat:
    """``order``: the order of year, month and day, as letters; ``sign``: the separator."""

    order: tuple[str, ...]
    sign: str

    @property
    def pattern(self) -> str:
        """A regular expression for days, with a group for each of the three parts."""
        few = "{1,2}" if self.sign else "{2}"
        form = {"Y": "([0-9]{4})", "M": f"([0-9]{few})", "D": f"([0-9]{few})"}
        return (f"[{self.sign}]" if self.sign else "").join(form[part] for part in self.order)


def number_format(text: str) -> NumberFormat:
    """Read a format of numbers. Raises ``ValueError`` if the text is not such a format."""
    found = re.fullmatch(r"(?:1([., ']?)234(?:([.,])5)?|12)( ?%)?", text)
    if found is None or (found[1] and found[1] == found[2]) or text == "12":
        raise ValueError(
            f"{text!r} is not a format of numbers. Write 1234.5 in the survey's format: 1.234,5 or"
            " 1,234.5, 1 234,5, 1'234.5, 1234,5, or 12% for hundredths"
        )
    thousands, decimal = found[1] or "", found[2] or ("," if found[1] == "." else ".")
    return NumberFormat(LIKE.get(thousands, thousands), decimal, bool(found[3]))


def date_format(text: str) -> DateFormat:
    """Read a format of days. Raises ``ValueError`` if the text is not such a format."""
    found = re.fullmatch(r"(YYYY|MM|DD)([./-]?)(YYYY|MM|DD)\2(YYYY|MM|DD)", text)
    if found is None or len({found[1], found[3], found[4]}) < 3:
        raise ValueError(
            f"{text!r} is not an order of YYYY, MM and DD, such as DD.MM.YYYY, MM/DD/YYYY or YYYYMMDD"
        )
    return DateFormat((found[1][0], found[3][0], found[4][0]), found[2])


def _as_written(given: Any) -> Any:
    """The format as text, because YAML reads 1234.5 as a number."""
    return str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given


Format = Annotated[
    StrictStr,
    BeforeValidator(_as_written),
    Field(
        description="The survey's text format of numbers, shown by 1234.5 in this format, such as"
        " 1.234,5 or 1 234,5; or 12% for hundredths. For parts of dates: DD.MM.YYYY, MM/DD/YYYY,"
        " YYYYMMDD and the like. Default: 1234.5 and 2024-01-31.",
        exclude_if=absent,
    ),
]

SourceName = Annotated[
    StrictStr,
    Field(
        description="The column's name in the survey, if the name cannot be published or is not valid"
        " here. It is never published.",
        exclude_if=absent,
    ),
]
