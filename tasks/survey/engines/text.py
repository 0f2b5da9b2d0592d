"""Numbers and dates that a survey writes as text, as Ibis expressions equivalent to ``survey.sql``.

An engine stops a query that casts unreadable text. So text is cast only after a check of its form, and
days are checked by arithmetic.
"""

from typing import Any

from schemas.survey.dates import Part
from schemas.survey.formats import TIME, DateFormat, NumberFormat
from tasks.survey.dates import part_of

DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_END = "(?!a|[^a])"
"""The pattern for the end of text; in some engines ``$`` also matches before a final line end."""


def number_of(value: Any, form: NumberFormat, whole: bool) -> Any:
    """The number in an Ibis text; null if it is written in another form, or is not ``whole``."""
    import ibis  # slow to import, and only the private steps need it

    digits = text = value.strip()
    for sign in form.dropped:
        digits = digits.replace(sign, "")
    digits = digits.replace(form.decimal, ".")
    fits = text.re_search(f"^({form.pattern}){_END}")
    if not whole:
        return ibis.ifelse(fits, digits + form.shift, ibis.null("string")).cast("float64")
    fits &= digits.re_search(f"^[+-]?[0-9]+([.]0*)?{_END}")
    before = digits.re_extract("^([+-]?[0-9]+)", 1)
    return ibis.ifelse(fits, before, ibis.null("string")).cast("int64")


def part_of_text(value: Any, form: DateFormat, part: Part) -> Any:
    """A part of the date in an Ibis text or whole number; null if that is not a date in this form."""
    import ibis

    text = value.cast("string").strip()
    fits = text.re_search(f"^{form.pattern}{TIME}{'?' * (part != 'hour')}{_END}")

    def group(pattern: str, number: int) -> Any:
        return ibis.ifelse(fits, text.re_extract(pattern, number), ibis.null("string")).cast(
            "int64"
        )

    day = {sign: group(f"^{form.pattern}", i) for i, sign in enumerate(form.order, 1)}
    year, month = day["Y"], day["M"]
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    of_month = ibis.cases(*((month == i, days) for i, days in enumerate(DAYS, 1)), else_=0)
    most = of_month + ibis.ifelse(leap & (month == 2), 1, 0)
    known = year.between(1, 9999) & month.between(1, 12) & (day["D"] >= 1) & (day["D"] <= most)
    if part == "hour":
        return ibis.ifelse(known, group(f"^{form.pattern}{TIME}", 5), ibis.null("int64"))
    numbers = [ibis.ifelse(known, each, ibis.null("int64")) for each in (year, month, day["D"])]
    return part_of(ibis.date(*numbers), part)
