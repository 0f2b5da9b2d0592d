"""Parts of dates, as DuckDB's SQL and as an equivalent Ibis expression.

A date with a time zone is read in UTC.  The part is null for a date before the year 1 or after 9999, for
an infinite one, and for the hour of a date without a time.
"""

from datetime import date, datetime
from typing import Any

from schemas.survey.dates import Part
from schemas.survey.formats import TIME, DateFormat
from tasks.survey.sql import dated, is_text, moment, text

FIELDS: dict[Part, str] = {"year": "year", "month": "month", "weekday": "isodow", "hour": "hour"}
"""DuckDB's names of the parts."""

_DAY = r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}"


def part_in_sql(value: str, kind: str, part: Part, form: DateFormat | None = None) -> str:
    """SQL of a part of a value of the DuckDB type ``kind``, as BIGINT; it never raises.

    Text must be written 2020-01-31, or 2020-01-31 17:30 with seconds or without, or with a T between;
    with ``form``, the day as it says.
    """
    if form and kind != "DATE" and not kind.startswith("TIMESTAMP"):
        value, kind = dated(value, kind, form), "VARCHAR"
    if is_text(kind):
        plain = text(_DAY + (TIME if part == "hour" else f"{TIME}?") + r"\s*")
        value = f"CAST({value} AS VARCHAR)"
        value = f"CASE WHEN regexp_full_match({value}, {plain}) THEN trim({value}) END"
        at = f"TRY_CAST({value} AS TIMESTAMP)"
    elif not kind.startswith("TIMESTAMP") and (part == "hour" or kind != "DATE"):
        return "CAST(NULL AS BIGINT)"
    else:
        at = moment(value, kind)
    known = f"date_part('year', {at}) BETWEEN 1 AND 9999"
    return f"CASE WHEN {known} THEN date_part({text(FIELDS[part])}, {at}) END"


def part_of(value: Any, part: Part) -> Any:
    """The part of an Ibis value, a date or a timestamp, as a 64-bit whole number."""
    import ibis  # slow to import, and only the private steps need it

    if value.type().is_date():
        known = value.between(ibis.literal(date.min), ibis.literal(date.max))
    else:
        value = value.cast("timestamp")
        known = value.between(ibis.literal(datetime.min), ibis.literal(datetime.max))
    # The engine computes it of a known date only: a part of an infinite one would stop the query.
    number = value.day_of_week.index() + 1 if part == "weekday" else getattr(value, part)()
    return ibis.ifelse(known, number.cast("int64"), ibis.null("int64"))
