"""A first plan holds names and types of columns, and no trace of a value."""

import gzip

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dpcore.errors import PlanError
from flows.cli import main
from schemas.first_plan.described import ColumnType
from schemas.first_plan.planner import first_plan
from schemas.first_plan.wishes import Said
from schemas.plan import load_plan
from schemas.survey.blanks import BLANK
from schemas.survey.dates import PartOfDate
from schemas.survey.source import TableSource
from tasks.survey.table_schema import table_schema

NAMES = ["sex", "age", "income", "insured", "born"]
DAY = ("year", "month", "weekday")


def table(secret: str, number: int, rows: int) -> pa.Table:
    """The same columns about other people."""
    frame = pd.DataFrame(
        {
            "sex": pd.Categorical([secret] * rows),
            "age": np.full(rows, number),
            "income": np.full(rows, number + 0.5),
            "insured": np.ones(rows, dtype=bool),
            "born": pd.to_datetime([f"19{number % 100:02}-07-09"] * rows).date,
        }
    )
    return pa.Table.from_pandas(frame).replace_schema_metadata({"note": f"{secret} {rows}"})


def write(folder, form: str, secret: str, number: int, rows: int) -> list[str]:
    """The table in one of the forms that a survey may have, as arguments of the command."""
    made = table(secret, number, rows)
    if form == "parquet":
        pq.write_table(made, folder / "t.parquet")
        return [str(folder / "t.parquet")]
    if form == "duckdb":
        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.execute(f"CREATE TYPE sexes AS ENUM ('{secret}')")
            connection.execute(
                "CREATE TABLE people AS SELECT sex::sexes AS sex, age, income, insured, born FROM made"
            )
        return [str(folder / "t.duckdb"), "--table", "people"]
    text = made.to_pandas().to_csv(index=False)
    opened = gzip.open if form == "csv.gz" else open
    with opened(folder / f"t.{form}", "wt", encoding="utf-8") as file:
        file.write(text)
    return [str(folder / f"t.{form}")]


FORMS = ("parquet", "duckdb", "csv", "csv.gz")


@pytest.mark.parametrize("form", FORMS)
def test_the_plan_of_two_tables_with_the_same_columns_is_the_same(tmp_path, capsys, form):
    written = []
    for secret, number, rows in (("zanzibar", 7331, 17), ("quetzal", 4242, 23)):
        folder = tmp_path / secret
        folder.mkdir()
        arguments = write(folder, form, secret, number, rows)
        assert main(["init", *arguments, "--out", str(folder / "plan.yaml")]) == 0
        written.append((folder / "plan.yaml").read_text())
        printed = capsys.readouterr()
        for trace in (secret, str(number), str(rows)):
            assert trace not in written[-1] + printed.err
    assert written[0] == written[1]
    columns = list(yaml.safe_load(written[0])["columns"])
    assert columns[:4] == NAMES[:4]
    assert columns[4:] == (["born"] if "csv" in form else [f"born_{part}" for part in DAY])


@pytest.mark.parametrize("form", FORMS)
def test_types_are_those_of_the_table_and_left_open_for_csv(tmp_path, form):
    file, *table_name = write(tmp_path, form, "a", 1, 2)
    found = table_schema(TableSource(database=file, table="people") if table_name else file)
    typed = [ColumnType.TEXT, ColumnType.WHOLE, ColumnType.REAL, ColumnType.TRUTH, ColumnType.DAY]
    assert list(found.items()) == list(
        zip(NAMES, [ColumnType.OPEN] * 5 if "csv" in form else typed, strict=True)
    )


def test_every_blank_is_refused_with_what_to_state_and_why(tmp_path):
    path = tmp_path / "plan.yaml"
    text = first_plan(
        "d", "t.parquet", {"sex": ColumnType.TEXT, "age": ColumnType.WHOLE, "pay": ColumnType.REAL}
    )
    path.write_text(text)
    with pytest.raises(PlanError) as refused:
        load_plan(path)
    lines = str(refused.value).splitlines()[1:]
    assert len(lines) == yaml.safe_dump(yaml.safe_load(text)).count(BLANK) == 8
    assert "columns.sex.categories: not filled in; list every answer" in str(refused.value)
    assert "columns.age.bounds" in str(refused.value)
    assert "values of single people" in str(refused.value)
    assert "releases[0].bins.pay" in str(refused.value)


FILLED = {
    "rows": 100,
    "budget.granted": {"alpha": "20", "beta": "1e-6", "gamma": "0"},
    "budget.requested": {"alpha": "10", "beta": "1e-6", "gamma": "0"},
    "columns.sex.categories": ["F", "M"],
    "columns.age.bounds": [0, 99],
    "columns.pay.bounds": [0, 1000],
    "columns.at_year.bounds": [2020, 2029],
    "publication.title": "A survey",
}


@pytest.mark.slow
def test_records_are_drawn_where_people_ask_for_records(tmp_path):
    path = tmp_path / "plan.yaml"
    kinds = {
        "sex": ColumnType.TEXT,
        "age": ColumnType.WHOLE,
        "pay": ColumnType.REAL,
        "at": ColumnType.TIME,
    }
    path.write_text(first_plan("d", "t.parquet", kinds, Said("records")))
    with pytest.raises(PlanError, match=r"budget\.requested\.beta: not filled in"):
        load_plan(path)
    plan = load_plan(path, FILLED | {"releases.0.bins.pay": 4})
    assert plan.releases[0].kind == "microdata-margins"
    names = ["sex", "age", "pay", "at_year", "at_month", "at_weekday", "at_hour"]
    assert list(plan.built["all-pairs"].domain.names) == list(plan.columns) == names
    assert plan.columns["at_hour"].from_ == PartOfDate(column="at", part="hour")
    assert plan.synthesis[0].from_ == "all-pairs"
    few = dict.fromkeys("abc", ColumnType.TRUTH)
    document = yaml.safe_load(first_plan("d", "t.parquet", few, Said("records")))
    assert document["releases"][0]["kind"] == "histogram"
    assert document["synthesis"][0]["from"] == document["releases"][0]["name"]
    assert document["budget"]["requested"]["beta"] == "0"


ODD = [
    "Mass (g)",
    "50%",
    "a/b",
    'say "hi"',
    "it's",
    "_id",
    "2nd",
    "2019",
    "",
    "😀",
    "x\ny",
    "a;b",
    " é",
]


@pytest.mark.parametrize("form", ["parquet", "csv", "csv.gz"])
def test_names_that_no_plan_allows_are_left_out_and_said_in_every_form(tmp_path, form):
    """R writes names of rows under an empty name; tables of years have columns named by them."""
    table = pd.DataFrame({name: ["F"] for name in ("sex", *ODD, "उम्र")})
    path = tmp_path / f"t.{form}"
    table.to_parquet(path) if form == "parquet" else table.to_csv(path, index=False)
    text = first_plan("d", path.name, table_schema(str(path)))
    assert list(yaml.safe_load(text)["columns"]) == ["sex", "उम्र"]
    assert [line for line in text.splitlines() if line.startswith("  #   ")] == [
        f"  #   {name!r}" for name in ODD
    ]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", "Zanzibar,7331\nQuetzal,4242\n", "field 2 of the first line is a number"),
        ("t.csv", "", "no column"),
        ("t.parquet", "Zanzibar", "cannot be read as a Parquet file"),
        ("t.duckdb", "Zanzibar", "name it with --table"),
        ("t.ods", "Zanzibar", "must be a file that ends with .parquet"),
    ],
)
def test_a_table_that_has_no_names_is_refused_without_its_values(
    tmp_path, capsys, name, content, says
):
    (tmp_path / name).write_text(content)
    assert main(["init", str(tmp_path / name)]) == 2
    printed = capsys.readouterr()
    assert says in printed.err
    for value in ("Zanzibar", "7331", "Quetzal"):
        assert value not in printed.err + printed.out


def test_a_plan_is_never_overwritten(tmp_path, capsys):
    (tmp_path / "plan.yaml").write_text("mine")
    arguments = write(tmp_path, "csv", "a", 1, 1)
    assert main(["init", *arguments, "--out", str(tmp_path / "plan.yaml")]) == 2
    assert "already exists" in capsys.readouterr().err
    assert (tmp_path / "plan.yaml").read_text() == "mine"
