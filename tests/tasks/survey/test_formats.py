"""Numbers and dates as people write them: read by the format, of each record alone, in every engine."""

import datetime
from collections.abc import Callable
from itertools import product
from pathlib import Path

import ibis
import pandas as pd
import pyarrow as pa
import pytest
from pydantic import ValidationError

from dpcore.errors import DataError
from schemas.survey.columns import Column
from schemas.survey.formats import date_format, number_format
from schemas.survey.source import PostgreSQLSource
from schemas.survey.unit import Weights
from tasks.survey.engines.postgresql import open_postgresql
from tasks.survey.ingest import ingest
from tasks.survey.memory import MemoryTable
from tasks.survey.reading import open_survey
from tasks.survey.validate import validate
from tests.tasks.ledger.test_postgresql import fresh_url
from tests.tasks.survey.tables import column

NUMBERS = {
    "1.234,5": [
        "1.234,5",
        "1234,5",
        "-1.234.567",
        "+7",
        ",5",
        "5,",
        " 7 ",
        "1.234",
        "1.234,50",
        "8,",
    ],
    "1,234.5": ["1,234.5", "1234.5", "-1,234,567.25", "0.5"],
    "1 234,5": ["1 234,5", "1\u00a0234,5", "1\u202f234", "1234,5"],
    "1'234.5": ["1'234.5", "1’234.5", "1234"],
    "1234,5": ["1234,5", "-0,1", "7"],
    "12%": ["12%", "12.3 %", "0.07%", "-100%", "33.33\u00a0%"],
    "1.234,5%": ["1.234,5%", "12,3%", "0,1 %"],
}
OTHERS = ["1.5", "1,5", "12.34", "1 2", "x", "1_0", "1e3", "nan", "inf", "--1", "1..2", "true", "%"]
OTHERS += [
    "",
    " ",
    "1,2,3",
    "1.234.5",
    "5\n6",
    "12\u0085",
    "0x10",
    "１",
    "1" * 19,
    "1.234,5 €",
    "%12",
]


def plainly(text: str, form: str) -> float | None:
    """The number that a text is, by its own reading of the format; None if it is none."""
    of = number_format(form)
    text = text.strip(" \t\n\r\v\f")
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if of.percent:
        if not digits.endswith("%"):
            return None
        digits = digits[:-1]
        digits = digits[:-1] if digits[-1:] in tuple(" \u00a0\u2009\u202f") else digits
    whole, mark, fraction = digits.partition(of.decimal)
    groups = [whole]
    if of.thousands:
        for sign_of in of.thousands:
            groups = [part for group in groups for part in group.split(sign_of)]
    right = len(groups) == 1 or (1 <= len(groups[0]) <= 3 and all(len(g) == 3 for g in groups[1:]))
    digits = "".join(groups)
    known = all(d in "0123456789" for d in digits + fraction) and len(digits) <= 18
    if not right or not known or not digits + fraction or (not digits and mark and not fraction):
        return None
    return float(f"{sign}{digits or '0'}.{fraction or '0'}e{-2 * of.percent}")


def table_of(texts: list[str]) -> pa.Table:
    return pa.table({"id": list(range(len(texts))), "x": texts})


READERS: dict[str, Callable[[pa.Table, Column, Path], list[object]]] = {}


def reader(function):
    READERS[function.__name__] = function
    return function


def _values(survey) -> list[object]:
    with open_survey(survey) as (table, *_):
        found = table.order_by("id").select("x").to_pyarrow()
    return found["x"].to_pylist()


ID = column("integer", bounds=(0, 10**6))


@reader
def parquet(table, of, folder):
    pa.parquet.write_table(table, folder / "t.parquet")
    return _values(ingest(str(folder / "t.parquet"), {"id": ID, "x": of}, len(table), folder / "w"))


@reader
def postgresql(table, of, folder):
    psycopg = pytest.importorskip("psycopg")
    url = fresh_url("postgresql", folder)
    with psycopg.connect(url, autocommit=True) as connection:
        ibis.postgres.from_connection(connection).create_table("survey", table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURVEY_DATABASE", url)
        source = PostgreSQLSource(postgresql="env:SURVEY_DATABASE", table="public.survey")
        return _values(open_postgresql(source, {"id": ID, "x": of}, len(table)))


def in_engines(*first: str) -> list[object]:
    slow = [pytest.param(name, marks=pytest.mark.slow) for name in READERS if name not in first]
    return [*first, *slow]


@pytest.mark.slow
@pytest.mark.parametrize("read", in_engines("parquet"))
@pytest.mark.parametrize("kind", ["continuous", "integer"])
def test_a_number_is_read_as_its_format_says_or_not_at_all(read, kind, tmp_path):
    texts = [text for listed in NUMBERS.values() for text in listed] + OTHERS
    for form in NUMBERS:
        if kind == "integer" and form.endswith("%"):
            continue
        (folder := tmp_path / str(len(list(tmp_path.iterdir())))).mkdir()
        bounds = (-99, 99) if form.endswith("%") else (-(10**9), 10**9)
        of = column(kind, bounds=bounds, format=form, nullable=True)
        expected = [plainly(text, form) for text in texts]
        if kind == "integer":
            expected = [None if v is None or v != int(v) else int(v) for v in expected]
        found = READERS[read](table_of(texts), of, folder)
        assert dict(zip(texts, found, strict=True)) == dict(zip(texts, expected, strict=True)), form
        assert sum(value is not None for value in found) >= len(NUMBERS[form]) - 4 * (
            kind != "continuous"
        )


DAYS = [
    datetime.date(y, m, d)
    for y, m, d in product((1, 1900, 2000, 2023, 2024, 9999), (1, 2, 3, 12), (1, 28))
]
DAYS += [datetime.date(2024, 2, 29), datetime.date(2000, 2, 29), datetime.date(1999, 12, 31)]
NO_DAYS = [
    "29.02.2023",
    "29.02.1900",
    "31.04.2024",
    "32.01.2024",
    "01.13.2024",
    "00.01.2024",
    "01.01.0000",
]
NO_DAYS += [
    "1.1.24",
    "2024-01-31",
    "01/02/2024",
    "01.02.2024 24:00",
    "01.02.2024 12:60",
    "x",
    "",
    "01.02.2024x",
]
FORMATS = {
    "DD.MM.YYYY": "{d:02}.{m:02}.{y:04}",
    "MM/DD/YYYY": "{m}/{d}/{y:04}",
    "YYYYMMDD": "{y:04}{m:02}{d:02}",
    "YYYY/MM/DD": "{y:04}/{m:02}/{d}",
}


@pytest.mark.slow
@pytest.mark.parametrize("read", in_engines("parquet"))
@pytest.mark.parametrize("part", ["year", "month", "weekday", "hour"])
def test_a_day_is_that_of_python_s_calendar(read, part, tmp_path):
    for i, (form, written) in enumerate(FORMATS.items()):
        (folder := tmp_path / str(i)).mkdir()
        days = [written.format(y=day.year, m=day.month, d=day.day) for day in DAYS]
        texts = [
            *days,
            *(f" {day} 17:30:59.5Z " for day in days),
            *(f"{day}T05:00" for day in days),
        ]
        others = NO_DAYS if form == "DD.MM.YYYY" else ["x", "2024-01-31", "31.12.2024 "]
        limits = {"year": (1, 9999), "month": (1, 12), "weekday": (1, 7), "hour": (0, 23)}[part]
        of = column(
            "integer",
            bounds=limits,
            format=form,
            nullable=True,
            **{"from": {"column": "x", "part": part}},
        )
        found = READERS[read](table_of(texts + others), of, folder)
        if part == "hour":
            expected = [None] * len(DAYS) + [17] * len(DAYS) + [5] * len(DAYS)
        else:
            one = [day.isoweekday() if part == "weekday" else getattr(day, part) for day in DAYS]
            expected = one * 3
        assert found == expected + [None] * len(others), form


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.float64(), pa.decimal128(19, 0)])
def test_eight_digits_may_be_a_number(kind, tmp_path):
    table = pa.table({"id": [0, 1], "x": pa.array([20240131, 20240230]).cast(kind)})
    of = column(
        "integer",
        bounds=(1, 7),
        format="YYYYMMDD",
        nullable=True,
        **{"from": {"column": "x", "part": "weekday"}},
    )
    assert parquet(table, of, tmp_path) == [3, None]
    if kind in (pa.int32(), pa.int64()):
        assert postgresql(table, of, tmp_path) == [3, None]


@pytest.mark.parametrize("values", [[1234.5, 7.0], [True, False]])
def test_what_is_stored_as_a_number_notices_no_format(values, tmp_path):
    of = column("continuous", bounds=(0, 10**4), format="1.234,5", nullable=True)
    table = pa.table({"id": [0, 1], "x": values})
    assert parquet(table, of, tmp_path) == [float(v) for v in values]


CELLS = [
    (0, 1.234, datetime.date(2024, 3, 1)),
    (1, "1.234", "05.04.2024"),
    (2, 7.5, datetime.datetime(2024, 3, 1, 17, 30)),
    (3, "7,5", "2024-03-01"),
    (4, None, 20240301),
    (5, -9.0, None),
    (6, "-9,0", "1.12.2024"),
]


def _workbook(folder: Path) -> str:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in (("id", "x", "d"), *CELLS):
        book.active.append(row)
    book.save(folder / "t.xlsx")
    return str(folder / "t.xlsx")


def _frame(folder: Path) -> MemoryTable:
    return MemoryTable(pd.DataFrame(CELLS, columns=["id", "x", "d"], dtype=object))


@pytest.mark.slow
@pytest.mark.parametrize("source", [_workbook, _frame])
@pytest.mark.parametrize(
    ("form", "months"),
    [
        ("DD.MM.YYYY", [3, 4, 3, None, None, None, 12]),
        ("YYYYMMDD", [3, None, 3, None, 3, None, None]),
    ],
)
def test_a_format_is_for_the_cells_that_are_text(source, form, months, tmp_path):
    of = column("continuous", bounds=(0, 2000), format="1.234,5", missing=[-9])
    month = {"from": {"column": "d", "part": "month"}}
    m = column("integer", bounds=(1, 12), format=form, nullable=True, **month)
    found = ingest(source(tmp_path), {"id": ID, "x": of, "m": m}, 7, tmp_path / "w")
    with open_survey(found) as (table, *_):
        read = table.order_by("id").to_pyarrow().to_pydict()
    assert read["x"] == [1.234, 1234.0, 7.5, 7.5, None, None, None]
    assert read["m"] == months


@pytest.mark.slow
def test_codes_of_no_answer_are_read_in_the_format(tmp_path):
    of = column("continuous", bounds=(0, 10**4), format="1.234,5", missing=[-1999, "NA"])
    texts = ["-1.999", "-1999,0", "-1999.0", "NA", "1,5"]
    assert parquet(table_of(texts), of, tmp_path) == [None, None, None, None, 1.5]
    source = str(tmp_path / "t.parquet")
    columns = {"x": of}
    with pytest.raises(
        DataError, match="1 row cannot be read as the declared type: not written as"
    ):
        validate(ingest(source, columns, 5, tmp_path / "w"), columns)


def test_weights_are_read_in_their_format(tmp_path):
    stated = {"largest": "2000", "step": "1", "total": "5000", "format": "1.234,5"}
    weights = Weights.model_validate({"column": "x", **stated})
    table = table_of(["1.234,5", "7", "1234.5"])
    assert parquet(table, weights.read, tmp_path) == [1234.5, 7.0, None]
    with pytest.raises(ValidationError, match=r"is not a format of numbers"):
        Weights.model_validate({"column": "x", **stated, "format": "DD.MM.YYYY"})


REFUSED = [
    ("continuous", "1.234.5", "is not a format of numbers"),
    ("continuous", "DD.MM.YYYY", "is not a format of numbers"),
    ("integer", "12%", "the type must be continuous"),
    ("continuous", "12%", "state bounds as shares"),
]


@pytest.mark.parametrize(("kind", "form", "says"), REFUSED)
def test_a_format_that_cannot_be_meant_is_refused(kind, form, says):
    with pytest.raises(ValidationError, match=says):
        column(kind, bounds=(0, 100), format=form)


@pytest.mark.parametrize(
    "form", ["DD.MM", "DD.MM.YY", "DD.MM/YYYY", "DD.DD.YYYY", "1.234,5", "%d.%m.%Y"]
)
def test_a_date_has_year_month_and_day(form):
    of = {"from": {"column": "x", "part": "year"}}
    with pytest.raises(ValidationError, match="an order of YYYY, MM and DD"):
        column("integer", bounds=(1900, 2100), format=form, **of)
    assert date_format("DD.MM.YYYY").sign == "."
