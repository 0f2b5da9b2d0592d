"""Surveys in Excel, Stata and SPSS files: the records of a data frame, and labels for a first plan."""

import datetime
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
import yaml

from dpcore.domain.adjacency import Adjacency
from dpcore.errors import DataError, InputError
from schemas.first_plan.planner import ColumnType, first_plan
from schemas.first_plan.wishes import Said
from schemas.survey.blanks import BLANK
from schemas.survey.columns import IdentifierColumn
from tasks.survey.ingest import ingest
from tasks.survey.memory import MemoryTable
from tasks.survey.private_file import connect
from tasks.survey.table_schema import questions_of, table_schema
from tests.tasks.survey.tables import column

DAYS = [datetime.date(2024, 1, 31), None, datetime.date(1899, 2, 1), datetime.date(2024, 12, 1)]
TABLE = {
    "person": [7.0, 8.0, 2.0**53, 7.5],
    "sex": [1.0, 2.0, 9.0, None],
    "age": [20.0, None, 30.0, 17.5],
    "pay": [0.1, 1e9, None, -3.25],
    "name": ["a", " b", None, "Zürich"],
    "on": DAYS,
}
COLUMNS = {
    "person": IdentifierColumn(),
    "sex": column("categorical", categories=["1", "2"], missing=[9]),
    "age": column("integer", bounds=(18, 99), nullable=True),
    "pay": column("continuous", bounds=(0.0, 1e6), nullable=True),
    "name": column("categorical", categories=["a", " b", "Zürich"], nullable=True),
    "month": column(
        "integer", bounds=(1, 12), nullable=True, **{"from": {"column": "on", "part": "month"}}
    ),
}
LABELS = {"sex": {1: "male", 2: "female", 9: "refused"}}
WORDS = ["", "Sex", "Age in  years", "Pay", "Name", "Day"]


def excel(folder: Path) -> str:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(list(TABLE))
    for place, row in enumerate(zip(*TABLE.values(), strict=True)):
        if place == 2:
            book.active.append([None] * len(TABLE))  # no record
            row = (
                *row[:-1],
                datetime.datetime(1899, 2, 1).isoformat(sep=" "),
            )  # before Excel's first day
        book.active.append(row)
    book.create_sheet("notes").append(["SECRET_7391"])
    book.save(folder / "t.xlsx")
    return str(folder / "t.xlsx")


def spss(folder: Path) -> str:
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_sav(
        pd.DataFrame(TABLE),
        folder / "t.sav",
        column_labels=WORDS,
        variable_value_labels=LABELS,
        missing_ranges={"sex": [9]},
        variable_format={"age": "F3.0", "sex": "F1.0"},
    )
    return str(folder / "t.sav")


def stata(folder: Path) -> str:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame(TABLE)
    pyreadstat.write_dta(frame, folder / "t.dta", column_labels=WORDS, variable_value_labels=LABELS)
    return str(folder / "t.dta")


def tabs(folder: Path) -> str:
    frame = pd.DataFrame(TABLE).assign(person=["7", "8", "", "7.5"], sex=["1", "2", "9", ""])
    frame.to_csv(folder / "t.tsv", sep="\t", index=False)
    return str(folder / "t.tsv")


def contents(source, folder: Path) -> list[tuple[object, ...]]:
    survey = ingest(source, COLUMNS, 4, folder / "work", Adjacency("add-remove"))
    with connect(survey) as connection:
        found = connection.execute("FROM survey").fetchall()
    return sorted([("" if row[0] is None else row[0], *row[1:]) for row in found], key=str)


@pytest.mark.slow
@pytest.mark.parametrize("write", [excel, spss, stata, tabs])
def test_the_records_are_those_of_a_data_frame(write, tmp_path):
    expected = contents(MemoryTable(pd.DataFrame(TABLE)), tmp_path)
    assert contents(write(tmp_path), tmp_path) == expected
    assert len(expected) == 4


@pytest.mark.parametrize("write", [spss, stata])
def test_labels_are_categories_and_values_are_not_looked_at(write, tmp_path):
    source = write(tmp_path)
    kinds, said = table_schema(source), questions_of(source)
    assert (kinds["name"], kinds["on"]) == (ColumnType.TEXT, ColumnType.DAY)
    plan = yaml.safe_load(first_plan("survey", source, kinds, Said(purpose="tables"), said))
    sex = plan["columns"]["sex"]
    assert sex["labels"]["1"] == "male"
    assert sex["categories"] == ([1, 2] if write is spss else [1, 2, 9])
    assert sex.get("missing") == ([9] if write is spss else None)
    assert plan["columns"]["name"]["categories"] == BLANK
    assert plan["columns"]["pay"]["bounds"] == BLANK
    assert plan["columns"]["age"]["description"] == "Age in years"
    assert plan["columns"]["age"]["type"] == ("integer" if write is spss else "continuous")
    assert "on_month" in plan["columns"]
    assert "Zürich" not in str(plan)


def test_a_sheet_has_names_alone(tmp_path):
    source = excel(tmp_path)
    assert table_schema(source) == dict.fromkeys(TABLE, ColumnType.OPEN)
    assert questions_of(source) == {}


@pytest.mark.parametrize("ending", ["xlsx", "dta", "sav"])
def test_what_is_not_installed_is_named(ending, tmp_path, monkeypatch):
    (tmp_path / f"t.{ending}").write_text("SECRET_7391")
    monkeypatch.setattr("tasks.survey.office_files.import_module", _missing)
    for read in (table_schema, lambda s: ingest(s, COLUMNS, 4, tmp_path / "work")):
        with pytest.raises(InputError, match=r'pip install "dprelease\[files\]"'):
            read(str(tmp_path / f"t.{ending}"))


def _missing(name: str) -> None:
    raise ImportError(name)


@pytest.mark.parametrize("ending", ["xlsx", "dta", "sav"])
def test_a_damaged_file_is_refused_without_its_words(ending, tmp_path):
    pytest.importorskip("openpyxl" if ending == "xlsx" else "pyreadstat")
    (tmp_path / f"t.{ending}").write_text("SECRET_7391")
    with pytest.raises(InputError, match=f"cannot be read as a file of {ending}") as caught:
        ingest(str(tmp_path / f"t.{ending}"), COLUMNS, 4, tmp_path / "work")
    assert caught.value.__context__ is None


HOUR = {
    "hour": column(
        "integer", bounds=(0, 23), nullable=True, **{"from": {"column": "at", "part": "hour"}}
    )
}
MOMENTS = [datetime.datetime(2024, 12, 31), datetime.datetime(2024, 2, 1, 5, 30), None]


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx", "dta", "sav", "frame", "objects"])
def test_midnight_is_an_hour_in_every_form(form, tmp_path):
    pytest.importorskip("openpyxl")
    pyreadstat = pytest.importorskip("pyreadstat")
    path, frame = tmp_path / f"t.{form}", pd.DataFrame({"at": pd.to_datetime(MOMENTS)})
    writers = {
        "csv": lambda: frame.to_csv(path, index=False, date_format="%Y-%m-%d %H:%M:%S"),
        "parquet": lambda: frame.to_parquet(path),
        "xlsx": lambda: frame.to_excel(path, index=False),
        "dta": lambda: frame.to_stata(path, write_index=False, convert_dates={"at": "tc"}),
        "sav": lambda: pyreadstat.write_sav(frame, path),
    }
    writers.get(form, lambda: None)()
    table = {"frame": frame, "objects": pd.DataFrame({"at": MOMENTS}, dtype=object)}.get(form)
    source = str(path) if table is None else MemoryTable(table)
    assert [hour for hour in hours(source, tmp_path) if hour is not None] == [0, 5]


@pytest.mark.parametrize("form", ["xlsx", "sav", "objects"])
def test_a_day_has_no_hour_in_any_form(form, tmp_path):
    pytest.importorskip("openpyxl")
    pyreadstat = pytest.importorskip("pyreadstat")
    path, frame = tmp_path / f"t.{form}", pd.DataFrame({"at": DAYS}, dtype=object)
    {
        "xlsx": lambda: frame[:2].to_excel(path, index=False),
        "sav": lambda: pyreadstat.write_sav(frame[:2], path),
    }.get(form, lambda: None)()
    source = MemoryTable(frame[:2]) if form == "objects" else str(path)
    assert set(hours(source, tmp_path)) == {None}


def hours(source: str | MemoryTable, folder: Path) -> list[int | None]:
    survey = ingest(source, HOUR, 3, folder / "work", Adjacency("add-remove"))
    with connect(survey) as connection:
        return [hour for (hour,) in connection.execute("SELECT hour FROM survey").fetchall()]


def test_formulas_without_values_are_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for cell in ("x", 1, "=1+1", "=A2"):
        book.active.append([cell])
    book.save(tmp_path / "t.xlsx")
    known = {"x": column("continuous", bounds=(0.0, 10.0), nullable=True)}
    with pytest.raises(DataError, match="formulas without values; open and save it"):
        ingest(str(tmp_path / "t.xlsx"), known, 3, tmp_path / "work")


def test_nothing_in_another_column_of_a_sheet_refuses_it_or_is_printed(tmp_path, recwarn):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for cells in (["x", "other", "secret"], [1, "=1+1", 3456789], [2, "=A2", 1]):
        book.active.append(cells)
    book.active["C2"].number_format = "DD.MM.YYYY"
    book.save(tmp_path / "t.xlsx")
    known = {"x": column("continuous", bounds=(0.0, 10.0), nullable=True)}
    assert ingest(str(tmp_path / "t.xlsx"), known, 2, tmp_path / "work")
    assert not [str(each.message) for each in recwarn if "serial value" in str(each.message)]


def test_an_hour_counts_where_a_cell_shows_the_day_alone_and_an_empty_text_is_a_value(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["at", "note"])
    book.active.append([MOMENTS[1], '=IF(1,"","x")'])
    book.active["A2"].number_format = "DD.MM.YYYY"
    book.save(tmp_path / "raw.xlsx")
    with ZipFile(tmp_path / "raw.xlsx") as raw, ZipFile(tmp_path / "t.xlsx", "w") as made:
        for name in raw.namelist():
            inside = raw.read(name)
            if name == "xl/worksheets/sheet1.xml":  # as a spreadsheet program stores an empty text
                assert b'<c r="B2"><f>' in inside
                inside = inside.replace(b'<c r="B2"><f>', b'<c r="B2" t="str"><f>')
            made.writestr(name, inside)
    assert hours(str(tmp_path / "t.xlsx"), tmp_path) == [5]
