"""Reading is a function of one record and the plan, whatever the physical form of the table.

One made-up table is written in many forms.  Every form gives the records of the first one; where one
record is replaced, tallies differ by that record alone; and no unit displaces the records of another.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
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

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.errors import DataError
from schemas.plan import Plan, load_plan
from schemas.survey.columns import IdentifierColumn, IntegerColumn, made_total
from schemas.survey.source import TableSource
from schemas.survey.unit import UnitColumn
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest
from tasks.survey.memory import MemoryTable
from tasks.survey.reading import Survey
from tasks.survey.tally import Counting, tallies
from tests.shortest import document
from tests.tasks.survey.tables import column

RULES = ("clamp", "own-cell", "drop")
ADDED = Adjacency("add-remove")

Table = Mapping[str, Sequence[Any]]
Form = Callable[[Table, Path], Any]

TABLE: Table = {
    "person": [7, 7, 8, 8, 8, 9, 10, 10, 11, 12],
    "digit": [1, 2, 1, 3, 2, 1, 2, 2, 1, None],
    "name": ["Jose", "José", "JOSE", "Ana", "ana", "José", " Ana", "Ana", "Jose", "Jose\u0301"],
    "age": [18, 90, 17, 40, 41, 42, None, 91, 50, 60],
    "amount": [1, 2, 2, 3, 1, None, 0, 4, 9, 2],
    "pay": [0.5, 1.25, 99.5, 100.0, 0.0, 12.0, 0.0, None, 3.5, 101.0],
    "works": [True, False, True, True, False, None, True, False, True, True],
    "day": [f"2024-{month:02}-01" for month in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12)],
}
WHOLE = ("person", "digit", "age", "amount")


def replaced(record: int, **values: Any) -> Table:
    """The table with another record in a place."""
    return {
        name: [values.get(name, v) if i == record else v for i, v in enumerate(column)]
        for name, column in TABLE.items()
    }


NEIGHBOURS = {
    "a missing value": replaced(
        0, digit=None, age=None, amount=None, pay=None, works=None, name=None
    ),
    "a value that is not listed": replaced(1, digit=7, age=0, amount=7, pay=-3.5, name="JOSE"),
}
COMPLETE = {name: [values[0] if v is None else v for v in values] for name, values in TABLE.items()}
TABLES: dict[str, Table] = {"itself": TABLE, "complete": COMPLETE, **NEIGHBOURS}


@functools.cache
def plan_of(rule: str, unit: bool) -> Plan:
    """A count of every column, and of two that may be equal, of all records or of at most two of each
    person."""
    month = {"column": "day", "part": "month"}
    columns: dict[str, dict[str, Any]] = {
        "digit": {"type": "categorical", "categories": ["1", "2"]},
        "name": {"type": "categorical", "categories": ["Jose", "José", "Ana", "ana"]},
        "age": {"type": "integer", "bounds": [18, 90]},
        "amount": {"type": "continuous", "bounds": [0, 4], "grid": 8},
        "pay": {"type": "continuous", "bounds": [0, 100], "grid": 8},
        "works": {"type": "categorical", "categories": [True, False]},
        "month": {"type": "integer", "bounds": [1, 12], "from": month},
    }
    releases = [
        {"name": f"of-{name}", "kind": "histogram", "columns": [name]}
        if of["type"] == "categorical"
        else {"name": f"of-{name}", "kind": "quantiles", "column": name, "levels": ["0.5"]}
        for name, of in columns.items()
    ]
    releases.append(
        {
            "name": "equal",
            "kind": "microdata-margins",
            "columns": ["amount", "pay"],
            "bins": {"amount": 2, "pay": 2},
            "often_equal": [["amount", "pay"]],
            "mechanism": "discrete-laplace",
        }
    )
    more = {
        "rows": 10,
        "privacy_unit": {"column": "person", "max_rows": 2} if unit else "row",
        "neighbours": "add-remove",
        "invalid": rule,
    }
    nullable = {name: of | {"nullable": True} for name, of in columns.items()}
    return load_plan(document(nullable, releases, **more))


def counted(plan: Plan, source: Any, folder: Path) -> dict[str, list[int]]:
    """The tally of each release, by cell."""
    survey = ingest(source, plan.read_columns, plan.rows, folder, plan.adjacency)
    return tallied(plan, survey)


def recorded(plan: Plan, source: Any, folder: Path) -> list[Any]:
    """The columns of the survey file, with their types, and its records."""
    survey = ingest(source, plan.read_columns, plan.rows, folder, plan.adjacency)
    with duckdb.connect(str(survey), read_only=True) as connection:
        columns = connection.execute("DESCRIBE survey").fetchall()
        return columns + connection.execute("SELECT * FROM survey ORDER BY ALL").fetchall()


def tallied(plan: Plan, survey: Survey) -> dict[str, list[int]]:
    tallies = tally_releases(plan, list(plan.built), survey)
    return {name: tally.dense().tolist() for name, tally in tallies.items()}


# The forms, each a function from a table and a folder to a source


def spelled(value: Any) -> str | None:
    """A value as text."""
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or kind in (pa.large_string(), pa.string_view())


def arrow(table: Table, **types: pa.DataType) -> pa.Table:
    """Columns in these types, the others as Arrow infers them."""

    def array(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
        make: Callable[[Any], Any] = lambda value: value  # noqa: E731
        if kind is not None and is_text(kind):
            make = spelled
        elif kind is not None and pa.types.is_decimal(kind):
            make = Decimal
        elif kind == pa.float16():
            make = np.float16
        return pa.array([None if v is None else make(v) for v in values], kind)

    return pa.table({name: array(values, types.get(name)) for name, values in table.items()})


def shuffled(table: Table, kind: pa.DataType, null: bool) -> pa.Table:
    """Columns of text and whole numbers as dictionaries whose codes are in another order.

    ``null``: whether null has a code of its own; otherwise it has none.
    """
    made = arrow(table, **dict.fromkeys(WHOLE, kind))
    for place, name in enumerate(made.column_names):
        if name in ("pay", "works"):
            continue
        values = made[name].to_pylist()
        known = [*sorted({v for v in values if v is not None}, reverse=True), *[None] * null]
        codes = [known.index(v) if v is not None or null else None for v in values]
        listed = pa.array(known, made[name].type)
        made = made.set_column(
            place, name, pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), listed)
        )
    return made


def on_days(table: Table, kind: pa.DataType) -> pa.Table:
    """With dates, or with times of a zone, as Arrow has them."""
    days = pa.array([datetime.fromisoformat(day) for day in table["day"]], pa.timestamp("ns"))
    if pa.types.is_timestamp(kind):
        days = compute.assume_timezone(days, "UTC")
    made = arrow(table)
    return made.set_column(made.column_names.index("day"), "day", days.cast(kind))


def parquet(made: pa.Table, folder: Path) -> str:
    pa.parquet.write_table(made, folder / "t.parquet")
    return str(folder / "t.parquet")


def csv(made: pa.Table, folder: Path) -> str:
    pa.csv.write_csv(made, folder / "t.csv")
    return str(folder / "t.csv")


ARROW: dict[str, Callable[[Table], pa.Table]] = {"inferred": arrow}
for kind in (pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()):
    ARROW[str(kind)] = lambda t, k=kind: arrow(t, **dict.fromkeys(WHOLE, k))
for kind in (pa.decimal128(12, 3), pa.decimal128(38, 10), pa.decimal256(50, 4)):
    ARROW[str(kind)] = lambda t, k=kind: arrow(t, **dict.fromkeys((*WHOLE, "pay"), k))
ARROW["decimal128(9, 0)"] = lambda t: arrow(t, **dict.fromkeys(WHOLE, pa.decimal128(9, 0)))
for kind in (pa.string(), pa.large_string(), pa.string_view()):
    ARROW[str(kind)] = lambda t, k=kind: arrow(t, **dict.fromkeys(t, k))
for kind in (pa.int64(), pa.float64(), pa.string()):
    ARROW[f"dictionary of {kind}"] = lambda t, k=kind: shuffled(t, k, null=False)
for name, kind in {"dates": pa.date32(), "zone": pa.timestamp("ns", "Asia/Tokyo")}.items():
    ARROW[name] = lambda t, k=kind: on_days(t, k)


def database(kind: str, others: str = "VARCHAR", **kinds: str) -> Form:
    """A view in a DuckDB file, with whole numbers in one type and text in another."""
    types = dict.fromkeys(TABLE, others) | dict.fromkeys(WHOLE, kind)
    types |= {"pay": "DOUBLE", "works": "BOOLEAN"} | kinds

    def write(table: Table, folder: Path) -> TableSource:
        written = {n: texts(v) if types[n].startswith("ENUM") else v for n, v in table.items()}
        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
            connection.execute(f"CREATE TABLE base ({columns})")
            rows = list(zip(*written.values(), strict=True))
            connection.executemany(f"INSERT INTO base VALUES (?{', ?' * (len(TABLE) - 1)})", rows)
            connection.execute("CREATE VIEW t AS SELECT * FROM base")
        return TableSource(database=str(folder / "t.duckdb"), table="t")

    return write


def enumeration(values: Sequence[Any]) -> str:
    return f"ENUM({', '.join(repr(str(v)) for v in sorted(set(values), reverse=True))})"


def frame(table: Table) -> pd.DataFrame:
    """As pandas makes it of lists: whole numbers with a missing one become floats."""
    return pd.DataFrame({**table, "day": pd.to_datetime(pd.Series(table["day"]))})


def typed(table: Table, dtype: Any) -> pd.DataFrame:
    """Whole numbers in a type of pandas, or in one that depends on the values."""
    make = dtype if callable(dtype) else lambda values: pd.Series(values, dtype=dtype)
    return frame(table).assign(**{name: make(table[name]) for name in WHOLE})


TURNS: tuple[Callable[[Any], Any], ...] = (
    *(int, float, Decimal, str, np.int64, np.float64, np.float32, lambda v: Decimal(f"{v}.00")),
)


def mixed(values: Sequence[Any]) -> pd.Series:
    """Objects of another type in each record."""
    turns = itertools.cycle(TURNS)
    made = [None if v is None else turn(v) for v, turn in zip(values, turns, strict=False)]
    return pd.Series(made, dtype=object)


def texts(values: Sequence[Any]) -> list[str | None]:
    return [spelled(v) for v in values]


def category(make: Callable[[Any, int], Any], *more: Any) -> Callable[[Sequence[Any]], pd.Series]:
    """A column of categories, in another order than the values, with levels that do not occur."""

    def of(values: Sequence[Any]) -> pd.Series:
        known = sorted({v for v in values if v is not None}, reverse=True)
        levels = [make(v, i) for i, v in enumerate(known)]
        written = texts(values) if isinstance(levels[0], str) else values
        return pd.Series(written, dtype=pd.CategoricalDtype([*more, *levels]))

    return of


PANDAS: dict[str, Callable[[Table], pd.DataFrame]] = {
    "lists": frame,
    "texts for dates": lambda t: pd.DataFrame(t, dtype=object),
    "nullable types": lambda t: frame(t).convert_dtypes(),
    "types of Arrow": lambda t: frame(t).convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda t: frame(t).astype(dict.fromkeys((*WHOLE, "name", "works"), "category")),
    "text": lambda t: typed(t, lambda values: pd.Series(texts(values), dtype="string")),
    "mixed": lambda t: typed(t, mixed),
    "categories of whole numbers": lambda t: typed(t, category(lambda v, i: v, 99)),
    "categories of floats": lambda t: typed(t, category(lambda v, i: float(v))),
    "categories of text": lambda t: typed(t, category(lambda v, i: str(v), "x")),
    "mixed categories": lambda t: typed(t, category(lambda v, i: float(v) if i % 2 else v, "x")),
}
for dtype in ("Float64", "float64", "int64[pyarrow]"):
    PANDAS[dtype] = lambda t, d=dtype: typed(t, d)
PANDAS["float16"] = lambda t: frame(t).astype(dict.fromkeys(WHOLE, "float16"))


def in_polars(of: Callable[[Any], Any], written: Callable[[Any], Any] | None = None) -> Form:
    """Whole numbers in a type of Polars, each ``written`` as a Python value first."""

    def make(table: Table, folder: Path) -> MemoryTable:
        polars = pytest.importorskip("polars")
        series = {
            name: polars.Series(
                [v if v is None or not written else written(v) for v in table[name]]
            )
            for name in WHOLE
        }
        return MemoryTable(polars.DataFrame({**table, **series}).cast(of(polars)))

    return make


def whole(kind: str, *more: int) -> Callable[[Any], Any]:
    return lambda p: dict.fromkeys(WHOLE, getattr(p, kind)(*more))


HUGE = "* REPLACE (digit::HUGEINT AS digit, age::HUGEINT AS age, amount::HUGEINT AS amount)"

FORMS: dict[str, Form] = {
    **{f"Arrow, {kind}": lambda t, f, make=make: MemoryTable(make(t)) for kind, make in ARROW.items()},
    **{
        f"Parquet, {kind}": lambda t, f, make=ARROW[kind]: parquet(make(t), f)
        for kind in ("inferred", "float", "decimal128(12, 3)", "dictionary of string", "zone")
    },
    "Arrow, dictionary with a code for null": lambda t, f: MemoryTable(
        shuffled(t, pa.int64(), null=True)
    ),
    "Parquet of pandas": lambda t, f: frame(t).to_parquet(f / "t.parquet") or str(f / "t.parquet"),
    "CSV": lambda t, f: csv(arrow(t, works=pa.string()), f),
    "CSV, quoted": lambda t, f: csv(arrow(t, **dict.fromkeys(t, pa.string())), f),
    **{
        f"DuckDB, {kind}": database(kind)
        for kind in ("BIGINT", "HUGEINT", "DOUBLE", "DECIMAL(9, 3)", "VARCHAR")
    },
    "DuckDB, dates": database("BIGINT", day="DATE"),
    "DuckDB, collated": database("VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOCASE.NOACCENT"),
    "DuckDB, enumerations": database(
        "BIGINT", name=enumeration(TABLE["name"]), digit=enumeration([3, 1, 2, 7, 9])
    ),
    "DuckDB, relation": lambda t, f: MemoryTable(duckdb.from_arrow(arrow(t)).project(HUGE)),
    **{
        f"pandas, {name}": lambda t, f, make=make: MemoryTable(make(t))
        for name, make in PANDAS.items()
    },
    **{
        f"Polars, {kind}": in_polars(whole(kind))
        for kind in ("UInt8", "Int128", "Float32")
    },
    "Polars, Decimal": in_polars(whole("Decimal", 9, 2), Decimal),
    "Polars, Categorical": in_polars(
        lambda p: dict.fromkeys((*WHOLE, "name"), p.Categorical), str
    ),
    "Polars, Enum": in_polars(
        lambda p: {"name": p.Enum(sorted(set(TABLE["name"]), reverse=True))}
    ),
}  # fmt: skip

SOME = (
    ("own-cell", True, "itself"),
    ("clamp", False, "complete"),
    ("drop", True, "a value that is not listed"),
    ("own-cell", False, "a missing value"),
)
"""Rule, whether a person's records are bounded, and table."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, list[int]]]:
    """The tallies of the first form, by plan and table."""

    @functools.cache
    def find(rule: str, unit: bool, name: str) -> dict[str, list[int]]:
        folder = tmp_path_factory.mktemp("first")
        return counted(plan_of(rule, unit), parquet(arrow(TABLES[name]), folder), folder / "w")

    return find


@pytest.mark.slow
def test_the_first_form_is_counted_as_it_is_written(expected):
    found = expected("own-cell", False, "itself")
    assert found["of-digit"] == [4, 4, 2]
    assert found["of-name"] == [2, 2, 2, 1, 3]
    assert found["of-amount"] == [1, 0, 2, 0, 3, 0, 1, 1, 2]
    assert found["of-works"] == [6, 3, 1]
    assert found["of-age"][0] == found["of-age"][-2] == 1
    assert found["of-age"][-1] == 3
    assert found["of-month"] == [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["CSV", "DuckDB, DOUBLE", "pandas, mixed"])
@pytest.mark.parametrize(("rule", "unit", "name"), SOME)
def test_a_form_of_each_library_gives_the_same_tally(form, rule, unit, name, expected, tmp_path):
    source = FORMS[form](TABLES[name], tmp_path)
    assert counted(plan_of(rule, unit), source, tmp_path / "w") == expected(rule, unit, name)


@pytest.fixture(scope="module")
def first_records(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("first")
    return recorded(plan_of("own-cell", True), parquet(arrow(TABLE), folder), folder / "w")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same_records(form, first_records, tmp_path):
    """So it gives the same tally, which knows nothing else of a survey."""
    source = FORMS[form](TABLE, tmp_path)
    assert recorded(plan_of("own-cell", True), source, tmp_path / "w") == first_records


FORMATS = {"age": "1.234", "amount": "1 234,5", "pay": "1.234,5", "month": "DD.MM.YYYY"}


def as_people_write(table: Table) -> Table:
    """The table with decimal commas, and days in another order."""
    days = [f"{day[8:]}.{day[5:7]}.{day[:4]}" for day in table["day"]]
    pay = [None if v is None else str(v).replace(".", ",") for v in table["pay"]]
    return {name: list(map(spelled, of)) for name, of in table.items()} | {"day": days, "pay": pay}


PEOPLE: dict[str, Form] = {
    "CSV": lambda t, f: csv(arrow(t), f),
    "Parquet": lambda t, f: parquet(arrow(t), f),
    "dictionary": lambda t, f: parquet(shuffled(t, pa.string(), null=False), f),
    "pandas": lambda t, f: MemoryTable(pd.DataFrame(t)),
    "DuckDB": lambda t, f: database("VARCHAR", pay="VARCHAR", works="VARCHAR")(t, f),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", PEOPLE)
def test_a_table_as_people_write_it_gives_the_same_tally(form, expected, tmp_path):
    for rule, unit, name in SOME[:2]:
        document = plan_of(rule, unit).public() | {"source": "t.parquet"}
        for column_name, written in FORMATS.items():
            document["columns"][column_name]["format"] = written
        source = PEOPLE[form](as_people_write(TABLES[name]), tmp_path)
        found = counted(load_plan(document), source, tmp_path / "w")
        assert found == expected(rule, unit, name)
        (tmp_path / "t.duckdb").unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "unit"), list(itertools.product(RULES, (False, True))))
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_one_record_moves_each_tally_by_at_most_one_unit(rule, unit, name, expected):
    most = 4 if unit else 2  # one unit's records go, and come elsewhere
    one, other = expected(rule, unit, "itself"), expected(rule, unit, name)
    moved = {key: np.abs(np.subtract(one[key], other[key])).sum() for key in one}
    assert 0 < max(moved.values()) <= most


@pytest.mark.slow
def test_identifiers_are_equal_only_if_they_are_the_same_value(tmp_path):
    """Accents, capitals, blanks and leading zeros distinguish units."""
    people = ["a", "A", "á", "a ", "a\u0301", "01", "1", "1.0", "ａ", "ß"]
    table = {**TABLE, "person": people}
    sources = {
        "CSV": csv(arrow(table, works=pa.string()), tmp_path),
        "DuckDB": FORMS["DuckDB, collated"](table, tmp_path),
        "pandas": MemoryTable(frame(table)),
        "Arrow": MemoryTable(arrow(table).set_column(
            0, "person", pa.array(people).dictionary_encode()
        )),
    }  # fmt: skip
    for name, source in sources.items():
        found = counted(plan_of("own-cell", True), source, tmp_path / "w")
        assert sum(found["of-name"]) == len(people), name


# Values of odd types, and units with odd names


def count(survey: Path, columns: Mapping[str, Any], rows: int, rule: Any) -> list[list[int]]:
    """The tally of each column alone."""
    domains = [Domain((of.axis(name),)) for name, of in columns.items()]
    found = tallies(
        survey, domains, Counting(rows=rows, adjacency=ADDED, columns=columns, invalid=rule)
    )
    return [tally.dense().tolist() for tally in found]


ODD = [
    *(None, 1.0, 2.5, "1", "x", True, 2**53 + 1, 2**70, Decimal("1.00"), b"1", [1], "\ud800"),
    *(Decimal("sNaN"), Fraction(10) ** 400, {}, object(), 1j, np.float16(1)),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=9))),
]


@pytest.mark.parametrize("odds", [ODD[5:8], pytest.param(ODD, marks=pytest.mark.slow)], ids=len)
def test_records_of_a_data_frame_do_not_depend_on_one_another(odds, tmp_path):
    """Whatever the type of one value, it moves at most two counts by one, and notes stop nothing."""
    rule = "own-cell"  # types are converted before any rule
    numbers = [1, 2, 1]
    columns = {
        "texts": column("categorical", categories=["1", "2", "3"], nullable=True),
        "numbers": column("integer", bounds=(1, 3), nullable=True),
        "reals": column("continuous", bounds=(0.0, 4.0), grid=8, nullable=True),
        "truth": column("categorical", categories=[True, False]),
    }
    columns = {name: made_total(of, rule) for name, of in columns.items()}

    def found(last: Any) -> list[list[int]]:
        values = {name: [*numbers, last] for name in columns} | {"truth": [1, 0, 1, last]}
        series = {name: pd.Series(of, dtype=object) for name, of in values.items()}
        table = pd.DataFrame(series | {"notes": pd.Series([*ODD[-4:]])})
        survey = ingest(MemoryTable(table), columns, 4, tmp_path / "work", ADDED)
        return count(survey, columns, 4, rule)

    base = found(1)
    for odd in odds:
        for one, other in zip(base, found(odd), strict=True):
            assert np.abs(np.subtract(one, other)).sum() <= 2, odd


@pytest.mark.parametrize("last", [2, None, "x"])
def test_records_of_a_list_of_values_do_not_depend_on_one_another(last, tmp_path):
    """Here pandas infers the type of the column from all its values."""
    columns = {"x": column("categorical", categories=["1", "2"], nullable=True)}
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}
    survey = ingest(MemoryTable(pd.DataFrame({"x": [1, 2, 1, last]})), columns, 4, tmp_path, ADDED)
    assert count(survey, columns, 4, "own-cell") == [[2, 1 + (last == 2), int(last != 2)]]


@pytest.mark.parametrize("last", [0.25, 1.0, 2.0**60, float("inf")])
def test_statistics_of_a_parquet_file_do_not_make_nan_a_category(last, tmp_path):
    """They leave NaN out, so that DuckDB takes every value for one between the smallest and largest."""
    columns = {"x": column("categorical", categories=["0.25", "0.5", "1", "nan"], nullable=True)}
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}
    values = pa.array([0.25, 0.5, float("nan"), float("nan"), last], pa.float64())
    pyarrow.parquet.write_table(pa.table({"x": values}), tmp_path / "t.parquet")
    survey = ingest(str(tmp_path / "t.parquet"), columns, 5, tmp_path / "work", ADDED)
    (found,) = count(survey, columns, 5, "own-cell")
    assert found == [1 + (last == 0.25), 1, int(last == 1), 0, 2 + (last > 1)]


def read_as(form: str, table: pa.Table, folder: Path) -> Any:
    """The table in memory, or as a Parquet file."""
    if form == "memory":
        return MemoryTable(table)
    pyarrow.parquet.write_table(table, folder / "t.parquet", write_statistics=False)
    return str(folder / "t.parquet")


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Vienna"])
@pytest.mark.parametrize(("form", "unit"), [("memory", "s"), ("memory", "ms"), ("parquet", "ms")])
def test_a_time_beyond_all_dates_stops_the_reading_of_no_other(form, unit, zone, tmp_path):
    columns = {
        "h": IntegerColumn(
            type="integer",
            bounds=(0, 23),
            nullable=True,
            **{"from": {"column": "t", "part": "hour"}},
        )
    }
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}
    times = pa.array([3600, 3600, 10**17], pa.timestamp(unit, zone))
    source = read_as(form, pa.table({"t": times}), tmp_path)
    survey = ingest(source, columns, 3, tmp_path / "work", ADDED)
    (found,) = count(survey, columns, 3, "own-cell")
    assert found[0 if unit == "ms" else 1] == 2
    assert found[-1] == 1


@pytest.mark.parametrize("form", ["memory", "parquet"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_that_is_not_utf_8_stops_the_reading_of_no_other(form, kind, tmp_path):
    columns = {"v": column("categorical", categories=["Graz", "Wien"])}
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}
    values = pa.array([b"Graz", b"K\xf6ln", b"Wien", None], pa.binary()).cast(kind, safe=False)
    survey = ingest(
        read_as(form, pa.table({"v": values}), tmp_path), columns, 4, tmp_path / "work", ADDED
    )
    assert count(survey, columns, 4, "own-cell") == [[1, 1, 2]]


def test_a_second_reading_keeps_the_types_of_the_first_or_refuses(tmp_path):
    """A value that makes DuckDB refuse a file must not change how other columns are read."""
    columns = {"v": column("categorical", categories=["Graz"])}
    columns |= {"u": column("categorical", categories=["1.5", "0.5"])}
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}
    texts = pa.array([b"Graz", b"K\xf6ln"], pa.binary()).cast(pa.string(), safe=False)
    numbers = pa.array([1.5, 0.5])
    source = read_as("parquet", pa.table({"v": texts, "u": numbers}), tmp_path)
    survey = ingest(source, columns, 2, tmp_path / "work", ADDED)
    assert count(survey, columns, 2, "own-cell") == [[1, 1], [1, 1, 0]]
    # DuckDB reads so many digits as floating-point numbers, and from Arrow they come as text.
    digits = numbers.cast(pa.decimal256(50, 1))
    source = read_as("parquet", pa.table({"v": texts, "u": digits}), tmp_path)
    with pytest.raises(DataError, match="cannot be read as a Parquet file"):
        ingest(source, columns, 2, tmp_path / "work", ADDED)


def test_a_duration_or_a_map_stops_the_reading_of_no_other_column(tmp_path):
    columns = {
        "v": column("categorical", categories=["Graz"]),
        "d": column("integer", bounds=(0, 3)),
    }
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}
    twice = pa.MapArray.from_arrays([0, 2], ["a", "a"], [1, 2])
    for odd in (pa.array([2**62], pa.duration("s")), twice):
        table = pa.table({"v": ["Graz"], "d": odd})
        survey = ingest(MemoryTable(table), columns, 1, tmp_path / "work", ADDED)
        assert count(survey, columns, 1, "own-cell") == [[1, 0], [0, 0, 0, 0, 1]]


def test_decimals_in_hundreds_are_read_as_the_whole_numbers_that_they_are(tmp_path):
    columns = {
        "x": column("integer", bounds=(0, 2000)),
        "c": column("categorical", categories=["1200"]),
    }
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}
    hundreds = pa.array([Decimal(1200), None], pa.decimal128(5, -2))
    survey = ingest(
        MemoryTable(pa.table({"x": hundreds, "c": hundreds})), columns, 2, tmp_path / "work", ADDED
    )
    numbers, categories = count(survey, columns, 2, "own-cell")
    assert (numbers[1200], categories) == (1, [1, 1])


@pytest.mark.parametrize("first", [b"\n", b"\r\n", b"M\r\n"])
def test_an_empty_first_line_of_a_file_of_one_column_is_one_record(first, tmp_path):
    columns = {"a": column("categorical", categories=["F", "M"], nullable=True)}
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}
    (tmp_path / "t.csv").write_bytes(b"a\n" + first + b"F\n" * 9)
    survey = ingest(str(tmp_path / "t.csv"), columns, 10, tmp_path / "work", ADDED)
    assert count(survey, columns, 10, "own-cell") == [
        [9, int(first[:1] == b"M"), int(first[:1] != b"M")]
    ]


LARGE = (2.0**53, 9007199254740994.0, 1.2345678901234567e19, 2.0**60, -(2.0**70), 1e200, 0.1, -0.0)


@pytest.mark.parametrize("value", LARGE)
def test_one_text_among_floats_moves_no_other_number(value, tmp_path):
    """With a text, a column of floats becomes one of objects, which are read as text."""
    columns = {"x": column("integer", bounds=(0, 3), nullable=True, outside="clamp")}
    columns = {name: made_total(of, "own-cell") for name, of in columns.items()}

    def found(values: list[Any]) -> list[int]:
        table, rows = pd.DataFrame({"x": values}), len(values)
        survey = ingest(MemoryTable(table), columns, rows, tmp_path / "work", ADDED)
        return count(survey, columns, rows, "own-cell")[0]

    alone, beside = found([value] * 4), found([value] * 4 + ["x"])
    assert np.abs(np.subtract(alone, beside)).sum() == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COLLATE NOCASE", "COLLATE NOACCENT", "COLLATE NFC"])
def test_text_is_compared_sign_by_sign_whatever_its_collation(kind, tmp_path):
    names = column("categorical", categories=["Jose", "José", "jose", "Ana"], nullable=True)
    coded = names.model_copy(update={"missing": ["JOSE", "Jose\u0301"]})
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t (x VARCHAR {kind})")
        values = ["Jose", "José", "Jose\u0301", "jose", "Jose ", None]
        connection.executemany("INSERT INTO t VALUES (?)", [[v] for v in values])
    source = TableSource(database=str(tmp_path / "t.duckdb"), table="t")
    for of in (names, coded):
        columns = {"x": made_total(of, "own-cell")}
        survey = ingest(source, columns, 6, tmp_path / "work", ADDED)
        assert count(survey, columns, 6, "own-cell") == [[1, 1, 1, 0, 3]]


UNITS = {
    "text under a collation": ("VARCHAR COLLATE NOCASE", ["u1", "U1", "ú1", "u1 "]),
    "doubles": ("DOUBLE", [1.0, 2.0, 2.0**53, 2.0**60]),
    "not exact": ("DOUBLE", [float("nan"), float("inf"), 2.0**54, 0.00001]),
    "nobody": ("VARCHAR", ["", " ", None, "\t"]),
    "whole numbers": ("HUGEINT", [2**53, 2**53 + 1, 2**90, 2**90 + 1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", UNITS)
def test_no_unit_displaces_the_records_of_another(form, tmp_path):
    kind, units = UNITS[form]
    of = column("categorical", categories=["p", "q", "r", "s"])
    read, added = {"x": of, "u": IdentifierColumn()}, Adjacency("add-remove", 2, unit="u")
    domain, unit = Domain((of.axis("x"),)), UnitColumn(column="u", max_rows=2)

    def tally(*present: int) -> np.ndarray:
        """The tally of three records of each of these units."""
        path = tmp_path / "t.duckdb"
        path.unlink(missing_ok=True)
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE t (u {kind}, x VARCHAR)")
            rows = [[units[i], "pqrs"[i]] for i in present] * 3
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        source = TableSource(database=str(path), table="t")
        survey = ingest(source, read, 9, tmp_path / "work", added)
        return tallies(
            survey,
            [domain],
            Counting(rows=9, adjacency=added, unit=unit, columns=read, invalid="drop"),
        )[0].dense()

    everyone = tally(0, 1, 2, 3)
    for gone in (1, 2):
        others = tally(*({0, 1, 2, 3} - {gone}))
        assert np.abs(everyone - others).sum() <= 2
    if form in ("text under a collation", "whole numbers"):
        assert everyone.tolist() == [2, 2, 2, 2]
