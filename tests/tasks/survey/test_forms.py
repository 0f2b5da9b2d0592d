"""How a value is read is a function of the value and the plan, in whatever form its table comes.

One made-up table is written in many physical forms.  Every form gives the tally of the first, under
every rule for values that are not valid; and where one record is replaced, the tallies of every form
differ by that record alone.  ``pytest -s`` prints the table of forms.
"""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv
import pyarrow.parquet
import pytest

from schemas.plan import Plan, load_plan
from schemas.survey.source import TableSource
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest
from tasks.survey.memory import MemoryTable
from tasks.survey.reading import Survey
from tests.conftest import those_slow, write_plan

RULES = ("clamp", "own-cell", "drop")
PERSON = [7, 7, 8, 8, 8, 9, 10, 10, 11, 12]
DIGIT = [1, 2, 1, 3, 2, 1, 2, 2, 1, None]
NAME = ["Jose", "José", "JOSE", "Ana", "ana", "José", " Ana", "Ana", "Jose", "Jose\u0301"]
AGE = [18, 90, 17, 40, 41, 42, None, 91, 50, 60]
PAY = [0.5, 1.25, 99.5, 100.0, 0.0, 12.0, 7.75, None, 3.5, 101.0]
WORKS = [True, False, True, True, False, None, True, False, True, True]
DAY = [f"2024-{month:02}-01" for month in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12)]
TABLE: dict[str, list[Any]] = {
    "person": PERSON, "digit": DIGIT, "name": NAME, "age": AGE, "pay": PAY, "works": WORKS, "day": DAY,
}  # fmt: skip


def plan_of(folder: Path, rule: str, unit: bool) -> Plan:
    """A count of every column, of all records or of at most two of each person."""
    nullable = {"nullable": True}
    columns = {
        "digit": {"type": "categorical", "categories": ["1", "2"], **nullable},
        "name": {"type": "categorical", "categories": ["Jose", "José", "Ana", "ana"], **nullable},
        "age": {"type": "integer", "bounds": [18, 90], **nullable},
        "pay": {"type": "continuous", "bounds": [0, 100], "grid": 8, **nullable},
        "works": {"type": "categorical", "categories": [True, False], **nullable},
        "month": {
            "type": "integer", "bounds": [1, 12], "from": {"column": "day", "part": "month"}, **nullable,
        },
    }  # fmt: skip
    kinds = {"age": "quantiles", "pay": "quantiles", "month": "quantiles"}
    releases = [
        {"name": f"of-{name}", "kind": "quantiles", "column": name, "levels": ["0.5"]}
        if name in kinds
        else {"name": f"of-{name}", "kind": "histogram", "columns": [name]}
        for name in columns
    ]
    document = {
        "dprelease": 1,
        "dataset": "forms",
        "source": "t.parquet",
        "rows": len(PERSON),
        "privacy_unit": {"column": "person", "max_rows": 2} if unit else "row",
        "neighbours": "add-remove",
        "budget": {"granted": {"alpha": "9"}, "requested": {"alpha": "9"}},
        "columns": columns,
        "invalid": rule,
        "releases": releases,
        "publication": {"title": "Forms"},
    }
    return load_plan(write_plan(folder, document))


def counted(plan: Plan, source: Any, folder: Path) -> dict[str, list[int]]:
    """The tally of each release, by cell."""
    folder.mkdir()
    survey = ingest(source, plan.read_columns, plan.rows, folder, plan.adjacency)
    return tallied(plan, survey)


def tallied(plan: Plan, survey: Survey) -> dict[str, list[int]]:
    tallies = tally_releases(plan, list(plan.built), survey)
    return {name: tally.dense().tolist() for name, tally in tallies.items()}


# The forms: a table of columns as a source, each record by itself

Form = Callable[[dict[str, list[Any]], Path], Any]


def frame(table: dict[str, list[Any]]) -> pd.DataFrame:
    """As pandas makes it of lists: whole numbers with a missing one become floats."""
    return pd.DataFrame({**table, "day": pd.to_datetime(pd.Series(table["day"]))})


def objects(table: dict[str, list[Any]]) -> pd.DataFrame:
    """Mixed types in every column: whole numbers as floats, decimals and text by turns."""
    turns: tuple[Callable[[Any], Any], ...] = (int, float, Decimal, str, np.int64, np.float64)
    mixed = {
        name: [None if v is None else turns[i % len(turns)](v) for i, v in enumerate(table[name])]
        for name in ("person", "digit", "age")
    }
    return pd.DataFrame({**table, **mixed}, dtype=object)


def arrow(table: dict[str, list[Any]], **types: pa.DataType) -> pa.Table:
    def column(name: str) -> pa.Array:
        kind = types.get(name)
        values = table[name]
        if kind is not None and pa.types.is_decimal(kind):
            values = [None if v is None else Decimal(v) for v in values]
        if kind is not None and (pa.types.is_string(kind) or kind in TEXTS):
            return pa.array([None if v is None else str(v).lower() if isinstance(v, bool) else str(v)
                             for v in values], kind)  # fmt: skip
        return pa.array(values, kind)

    return pa.table({name: column(name) for name in table})


TEXTS = (pa.large_string(), pa.string_view())
NUMBERS = ("person", "digit", "age")


def shuffled(table: dict[str, list[Any]], null: bool = True) -> pa.Table:
    """Columns of text and whole numbers as dictionaries whose codes are in another order.

    ``null``: whether null has a code of its own; otherwise it has none.
    """
    made = arrow(table)
    for place, name in enumerate(made.column_names):
        if name in ("pay", "works"):
            continue
        values = made[name].to_pylist()
        known = [*sorted({v for v in values if v is not None}, reverse=True), *[None] * null]
        codes = [known.index(v) if v is not None or null else None for v in values]
        coded = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(known))
        made = made.set_column(place, name, coded)
    return made


def on_days(table: dict[str, list[Any]], kind: pa.DataType) -> pa.Table:
    """With dates, or with times of a zone, as Arrow has them."""
    days = pa.array([datetime.fromisoformat(day) for day in table["day"]], pa.timestamp("ns"))
    if pa.types.is_timestamp(kind):
        days = compute.assume_timezone(days, "UTC")
    made = arrow(table)
    return made.set_column(made.column_names.index("day"), "day", days.cast(kind))


def parquet(made: pa.Table, folder: Path) -> str:
    path = folder / "t.parquet"
    pa.parquet.write_table(made, path)
    return str(path)


def csv(table: dict[str, list[Any]], folder: Path) -> str:
    path = folder / "t.csv"
    pa.csv.write_csv(arrow(table, works=pa.string()), path)
    return str(path)


def database(columns: str, view: str = "") -> Form:
    """A table of a DuckDB file with these columns, or a view of it."""

    def write(table: dict[str, list[Any]], folder: Path) -> TableSource:
        path = folder / "t.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE base ({columns})")
            rows = list(zip(*table.values(), strict=True))
            connection.executemany("INSERT INTO base VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            connection.execute(f"CREATE VIEW t AS {view or 'FROM base'}")
        return TableSource(database=str(path), table="t")

    return write


COLLATED = (
    "person VARCHAR COLLATE NOCASE, digit VARCHAR COLLATE NOCASE, name VARCHAR COLLATE NOCASE.NOACCENT,"
    " age VARCHAR COLLATE NOACCENT, pay DOUBLE, works BOOLEAN, day VARCHAR COLLATE NOCASE"
)
PLAIN = "person BIGINT, digit BIGINT, name VARCHAR, age BIGINT, pay DOUBLE, works BOOLEAN, day DATE"
NAMES = ", ".join(f"'{name}'" for name in sorted(set(NAME), reverse=True))

FORMS: dict[str, Form] = {
    "Parquet, whole numbers": lambda t, f: parquet(arrow(t), f),
    "Parquet, floats": lambda t, f: parquet(arrow(t, **dict.fromkeys(NUMBERS, pa.float64())), f),
    "Parquet, single floats": lambda t, f: parquet(arrow(t, **dict.fromkeys(NUMBERS, pa.float32())), f),
    "Parquet, decimals": lambda t, f: parquet(
        arrow(t, **dict.fromkeys((*NUMBERS, "pay"), pa.decimal128(12, 3))), f
    ),
    "Parquet, long decimals": lambda t, f: parquet(
        arrow(t, **dict.fromkeys((*NUMBERS, "pay"), pa.decimal128(38, 10))), f
    ),
    "Parquet, small numbers": lambda t, f: parquet(arrow(t, **dict.fromkeys(NUMBERS, pa.int8())), f),
    "Parquet, unsigned": lambda t, f: parquet(arrow(t, **dict.fromkeys(NUMBERS, pa.uint64())), f),
    "Parquet, text": lambda t, f: parquet(arrow(t, **dict.fromkeys(t, pa.string())), f),
    "Parquet, dictionaries": lambda t, f: parquet(shuffled(t, null=False), f),
    "Parquet, dates": lambda t, f: parquet(on_days(t, pa.date32()), f),
    "Parquet, times with a zone": lambda t, f: parquet(
        on_days(t, pa.timestamp("ns", "Asia/Tokyo")), f
    ),
    "Arrow, times with a zone": lambda t, f: MemoryTable(
        on_days(t, pa.timestamp("ns", "Asia/Tokyo"))
    ),
    "Parquet of pandas": lambda t, f: frame(t).to_parquet(f / "t.parquet") or str(f / "t.parquet"),
    "CSV": csv,
    "DuckDB": database(PLAIN),
    "DuckDB, collated": database(COLLATED),
    "DuckDB, view of a collated table": database(COLLATED, "SELECT * FROM base WHERE person <> 'none'"),
    "DuckDB, enumeration": database(PLAIN.replace("name VARCHAR", f"name ENUM({NAMES})")),
    "DuckDB, huge whole numbers": database(PLAIN.replace("BIGINT", "HUGEINT")),
    "pandas": lambda t, f: MemoryTable(frame(t)),
    "pandas, objects": lambda t, f: MemoryTable(objects(t)),
    "pandas, nullable types": lambda t, f: MemoryTable(frame(t).convert_dtypes()),
    "pandas, Arrow's types": lambda t, f: MemoryTable(frame(t).convert_dtypes(dtype_backend="pyarrow")),
    "pandas, categories": lambda t, f: MemoryTable(
        frame(t).astype(dict.fromkeys(("person", "digit", "name", "age", "works"), "category"))
    ),
    "pandas, half floats": lambda t, f: MemoryTable(
        frame(t).astype(dict.fromkeys(NUMBERS, "float16"))
    ),
    "Arrow": lambda t, f: MemoryTable(arrow(t)),
    "Arrow, dictionaries": lambda t, f: MemoryTable(shuffled(t)),
    "Arrow, large text": lambda t, f: MemoryTable(arrow(t, **dict.fromkeys(t, pa.large_string()))),
    "Arrow, views of text": lambda t, f: MemoryTable(arrow(t, **dict.fromkeys(t, pa.string_view()))),
    "Arrow, widest decimals": lambda t, f: MemoryTable(
        arrow(t, **dict.fromkeys((*NUMBERS, "pay"), pa.decimal256(50, 4)))
    ),
}  # fmt: skip


def polars_form(change: str) -> Form:
    def make(table: dict[str, list[Any]], folder: Path) -> MemoryTable:
        polars = pytest.importorskip("polars")
        made = polars.DataFrame(table)
        kinds = {
            "plain": {},
            "categories": {"name": polars.Categorical},
            "enumeration": {"name": polars.Enum(sorted(set(NAME), reverse=True))},
            "floats": dict.fromkeys(NUMBERS, polars.Float64),
        }[change]
        return MemoryTable(made.cast(kinds) if kinds else made)

    return make


POLARS = {
    f"Polars, {change}": polars_form(change)
    for change in ("plain", "categories", "enumeration", "floats")
}


def replaced(record: int, **values: Any) -> dict[str, list[Any]]:
    """The table with another record in a place."""
    return {
        name: [values.get(name, v) if i == record else v for i, v in enumerate(column)]
        for name, column in TABLE.items()
    }


NEIGHBOURS = {
    "a missing value": replaced(0, digit=None, age=None, pay=None, works=None, name=None),
    "a value that is not listed": replaced(1, digit=7, age=0, pay=-3.5, name="JOSE"),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, list[int]]]:
    """The tallies of the first form, by plan and table."""
    known: dict[Any, dict[str, list[int]]] = {}

    def find(rule: str, unit: bool, name: str) -> dict[str, list[int]]:
        if (rule, unit, name) not in known:
            folder = tmp_path_factory.mktemp("first")
            table = NEIGHBOURS.get(name, TABLE)
            source = FORMS["Parquet, whole numbers"](table, folder)
            known[rule, unit, name] = counted(plan_of(folder, rule, unit), source, folder / "w")
        return known[rule, unit, name]

    return find


OFTEN = (
    "Parquet of pandas",
    "CSV",
    "DuckDB, view of a collated table",
    "DuckDB, enumeration",
    "pandas, objects",
    "Arrow, dictionaries",
    "Arrow, times with a zone",
)
"""Forms of the fast tests; ``test_values`` has more of them, for one column."""

SOME = (
    ("clamp", False, "itself"),
    ("own-cell", True, "a missing value"),
    ("drop", True, "a value that is not listed"),
    ("own-cell", False, "a value that is not listed"),
)
"""Rule, whether a person's records are bounded, and table: every form is read under each."""


@pytest.mark.parametrize("form", those_slow([*FORMS, *POLARS], {*FORMS, *POLARS} - {*OFTEN}))
def test_every_form_of_a_table_gives_the_same_tally_and_keeps_neighbours(form, expected, tmp_path):
    for number, (rule, unit, name) in enumerate(
        product(RULES, (False, True), ("itself", *NEIGHBOURS))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan = plan_of(folder, rule, unit)
        source = (FORMS | POLARS)[form](NEIGHBOURS.get(name, TABLE), folder)
        found = counted(plan, source, folder / "w")
        assert found == expected(rule, unit, name), (rule, unit, name)
    print(f"{form}: the same tallies under {', '.join(RULES)}, with units and without")


@pytest.mark.parametrize(("rule", "unit"), list(product(RULES, (False, True))))
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_one_record_moves_each_tally_by_one_unit_at_most(rule, unit, name, expected):
    most = 4 if unit else 2  # one unit's records go, and come elsewhere
    one, other = expected(rule, unit, "itself"), expected(rule, unit, name)
    moved = {key: np.abs(np.subtract(one[key], other[key])).sum() for key in one}
    assert 0 < max(moved.values()) <= most


def test_identifiers_are_equal_only_if_they_are_the_same_value(tmp_path, expected):
    """Sign by sign: accents, capitals, blanks and zeros in front tell units from each other."""
    people = ["a", "A", "á", "a ", "a\u0301", "01", "1", "1.0", "ａ", "ß"]
    plan = plan_of(tmp_path, "own-cell", True)
    for number, form in enumerate(("CSV", "DuckDB, collated", "pandas", "Arrow, dictionaries")):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = counted(plan, FORMS[form]({**TABLE, "person": people}, folder), folder / "w")
        assert sum(found["of-name"]) == len(people)


def test_no_other_record_decides_how_a_table_in_memory_is_read(tmp_path):
    """Objects of any type in a column, and columns that the plan does not name, stop nothing."""
    table = pd.DataFrame(TABLE)
    table["name"] = table["name"].astype(object)
    table.loc[0, "name"] = 7
    table["name"] = [[1], *table["name"][1:]]
    table["notes"] = pd.Series([1, "late", b"x", {}, [], None, 2.0, Decimal(1), object(), 1j])
    table["half"] = np.arange(10, dtype=np.float16)
    plan = plan_of(tmp_path, "own-cell", False)
    found = counted(plan, MemoryTable(table), tmp_path / "w")
    names = counted(plan, MemoryTable(pd.DataFrame(replaced(0, name="nobody"))), tmp_path / "v")
    assert found["of-name"] == names["of-name"]
