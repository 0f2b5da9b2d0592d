"""A value is read alike in every physical form, and no unit displaces another.

    pytest tests/tasks/survey/test_values.py -s      prints which form carries which column

A column of kind ``texts`` lists categories as text, ``numbers`` as whole numbers, ``unit`` identifies
units.
"""

import functools
import itertools
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from schemas.survey.columns import IdentifierColumn, made_total
from schemas.survey.source import TableSource
from schemas.survey.unit import UnitColumn
from tasks.survey.ingest import ingest
from tasks.survey.memory import MemoryTable
from tasks.survey.tally import tallies
from tests.tasks.survey.test_tally import column

NUMBERS = [1, 2, 2, 3, 1, None]
TEXTS = ["Jose", "José", "Jose\u0301", "jose", "Jose ", None]
COLUMNS = {
    "texts": column("categorical", categories=["1", "2", "3"], nullable=True),
    "numbers": column("integer", bounds=(1, 3), nullable=True),
    "reals": column("continuous", bounds=(0.0, 4.0), grid=8, nullable=True),
}
NAMES = column("categorical", categories=["Jose", "José", "jose", "Ana"], nullable=True)


def _arrow(kind, values=NUMBERS, make=lambda value: value):
    return pa.array([None if v is None else make(v) for v in values], kind)


def _shuffled(values, kind):
    listed = sorted({v for v in values if v is not None}, reverse=True)
    codes = [None if v is None else listed.index(v) for v in values]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(listed, kind))


def _duck(folder, kind, values):
    path = folder / "t.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE base (x {kind})")
        connection.executemany("INSERT INTO base VALUES (?)", [[v] for v in values])
        connection.execute("CREATE VIEW t AS SELECT * FROM base")
    return TableSource(database=str(path), table="t")


def _csv(folder, values):
    lines = ["" if v is None else f'"{v}"' for v in values]
    (folder / "t.csv").write_text("\n".join(["x", *lines]) + "\n")
    return str(folder / "t.csv")


def _parquet(folder, array):
    parquet.write_table(pa.table({"x": array}), folder / "t.parquet")
    return str(folder / "t.parquet")


def _memory(values):
    return MemoryTable(pd.DataFrame({"x": values}))


def _polars(values, of):
    polars = pytest.importorskip("polars")
    return MemoryTable(polars.DataFrame({"x": polars.Series(values, dtype=of(polars))}))


def _of_arrow(array):
    return {
        "Parquet": lambda folder: _parquet(folder, array()),
        "Arrow": lambda folder: MemoryTable(pa.table({"x": array()})),
    }


def _texts(values):
    return [None if v is None else str(v) for v in values]


MIXED = itertools.cycle([int, float, str, Decimal, lambda v: Decimal(f"{v}.00"), np.float32])
"""Objects of one data frame, of another type in each record."""


def forms(values):
    """By name, a function from a folder to a source that holds these whole numbers."""
    texts, rest = _texts(values), [v for v in values if v is not None]
    mixed = [None if v is None else make(v) for v, make in zip(values, MIXED, strict=False)]
    found = {"CSV": lambda folder: _csv(folder, texts)}
    kinds = [pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()]
    for kind in kinds:
        make = np.float16 if pa.types.is_float16(kind) else lambda value: value
        array = functools.partial(_arrow, kind, values, make)
        found |= {f"{name} {kind}": of for name, of in _of_arrow(array).items()}
    for kind in (pa.decimal128(9, 2), pa.decimal128(38, 0), pa.decimal256(40, 3)):
        array = functools.partial(_arrow, kind, values, Decimal)
        found |= {f"{name} {kind}": of for name, of in _of_arrow(array).items()}
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        array = functools.partial(_arrow, kind, texts)
        found |= {f"{name} {kind}": of for name, of in _of_arrow(array).items()}
    for of, kind in ((values, pa.int64()), (values, pa.float64()), (texts, pa.string())):
        array = functools.partial(_shuffled, of, kind)
        found |= {f"{name} dictionary {kind}": of for name, of in _of_arrow(array).items()}
    for kind in ("HUGEINT", "DOUBLE", "FLOAT", "DECIMAL(9, 3)", "UTINYINT"):
        found[f"DuckDB {kind}"] = lambda folder, k=kind: _duck(folder, k, values)
    for kind in ("VARCHAR", "VARCHAR COLLATE NOCASE", "ENUM('3', '1', '2', '9')"):
        found[f"DuckDB {kind}"] = lambda folder, k=kind: _duck(folder, k, texts)
    found["DuckDB relation"] = lambda folder: MemoryTable(
        duckdb.sql(f"SELECT unnest({[v or 0 for v in values]})::HUGEINT AS y, nullif(y, 0) AS x")
    )
    found["pandas"] = lambda folder: _memory(pd.Series(values))
    found["pandas object"] = lambda folder: _memory(pd.Series(values, dtype=object))
    found["pandas mixed"] = lambda folder: _memory(pd.Series(mixed, dtype=object))
    for dtype in ("Int64", "Float64", "float64", "Int8", "int64[pyarrow]", "double[pyarrow]"):
        found[f"pandas {dtype}"] = lambda folder, d=dtype: _memory(pd.Series(values, dtype=d))
    found["pandas string"] = lambda folder: _memory(pd.Series(texts, dtype="string"))
    for levels in ([3, 9, 1, 2], [3.0, 1.0, 2.0], ["2", "x", "1", "3"], [3, "x", 1.0, 2]):
        kind = pd.CategoricalDtype(levels)
        of = texts if isinstance(levels[0], str) else values
        found[f"pandas category {levels}"] = lambda folder, o=of, k=kind: _memory(
            pd.Series(o, dtype=k)
        )
    for name in ("Int64", "Float32", "UInt8", "Int128"):
        found[f"Polars {name}"] = lambda folder, n=name: _polars(values, lambda p: getattr(p, n))
    found["Polars Categorical"] = lambda folder: _polars(texts, lambda p: p.Categorical)
    found["Polars Enum"] = lambda folder: _polars(texts, lambda p: p.Enum(["3", "1", "9", "2"]))
    found["Polars Decimal"] = lambda folder: _polars(
        [None if v is None else Decimal(v) for v in values], lambda p: p.Decimal(9, 2)
    )
    return found if rest else {}


def counted(source, of, folder, rows, invalid="own-cell", unit=None):
    of = of if isinstance(of, IdentifierColumn) else made_total(of, invalid)
    read, added = {"x": of}, Adjacency("add-remove")
    survey = ingest(source, read, rows, folder / "work", added)
    domain = Domain((of.axis("x"),))
    (found,) = tallies(survey, [domain], rows, added, unit, None, read, invalid)
    return found.dense().tolist()


@pytest.mark.parametrize("form", forms(NUMBERS))
@pytest.mark.parametrize(
    "nulls", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["nulls", "no nulls"]
)
def test_a_whole_number_is_one_value_in_every_form(form, nulls, tmp_path):
    values = NUMBERS if nulls else NUMBERS[:-1]
    source = forms(values)[form]
    expected = {"texts": [2, 2, 1], "numbers": [2, 2, 1], "reals": [0, 0, 2, 0, 2, 0, 1, 0]}
    for name, of in COLUMNS.items():
        found = counted(source(tmp_path), of, tmp_path, len(values))
        assert found == [*expected[name], int(nulls)], name
        print(f"{form:40} {name:8} {found}")


@pytest.mark.parametrize("invalid", ["clamp", "own-cell", "drop"])
def test_records_of_a_data_frame_do_not_depend_on_one_another(invalid, tmp_path):
    """Any one record in place of another moves at most two counts by one, whatever type results."""
    others = [
        None,
        1.0,
        2.5,
        "1",
        "x",
        True,
        2**53 + 1,
        2**70,
        Decimal("1.00"),
        b"1",
        [1],
        "\ud800",
        Decimal("sNaN"),
        Fraction(10) ** 400,
        datetime.min.replace(tzinfo=timezone(timedelta(hours=9))),
    ]
    for of in (*COLUMNS.values(), column("categorical", categories=[True, False])):
        base = counted(_memory(pd.Series([1, 2, 1, 2])), of, tmp_path, 4, invalid)
        for other in others:
            changed = _memory([1, 2, 1, other])
            found = counted(changed, of, tmp_path, 4, invalid)
            assert np.abs(np.subtract(base, found)).sum() <= 2, (of, other)


@pytest.mark.parametrize(
    "kind", ["", "COLLATE NOCASE", "COLLATE NOACCENT", "COLLATE NFC", "COLLATE de"]
)
def test_text_is_compared_sign_by_sign_whatever_its_collation(kind, tmp_path):
    source = _duck(tmp_path, f"VARCHAR {kind}", TEXTS)
    assert counted(source, NAMES, tmp_path, 6) == [1, 1, 1, 0, 3]
    coded = NAMES.model_copy(update={"missing": ["JOSE", "Jose\u0301"]})
    assert counted(source, coded, tmp_path, 6) == [1, 1, 1, 0, 3]


UNITS = {
    "text under a collation": ("VARCHAR COLLATE NOCASE", ["u1", "U1", "ú1", "u1 "]),
    "doubles": ("DOUBLE", [1.0, 2.0, 2.0**53, 2.0**60]),
    "not exact": ("DOUBLE", [float("nan"), float("inf"), 2.0**54, 0.00001]),
    "nobody": ("VARCHAR", ["", " ", None, "\t"]),
    "whole numbers": ("HUGEINT", [2**53, 2**53 + 1, 2**90, 2**90 + 1]),
}


@pytest.mark.parametrize("invalid", ["clamp", "own-cell", "drop"])
@pytest.mark.parametrize("form", UNITS)
def test_no_unit_displaces_the_records_of_another(form, invalid, tmp_path):
    kind, units = UNITS[form]
    of = column("categorical", categories=["p", "q", "r", "s"])
    read, added = {"x": of, "u": IdentifierColumn()}, Adjacency("add-remove", 2, unit="u")
    domain, unit = Domain((of.axis("x"),)), UnitColumn(column="u", max_rows=2)

    def tally(present):
        path = tmp_path / "t.duckdb"
        path.unlink(missing_ok=True)
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE t (u {kind}, x VARCHAR)")
            for i in present:
                rows = [[units[i], "pqrs"[i]]] * 3
                connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        source = TableSource(database=str(path), table="t")
        survey = ingest(source, read, 9, tmp_path / "work", added)
        return tallies(survey, [domain], 9, added, unit, None, read, invalid)[0].dense()

    everyone = tally(range(4))
    for gone in range(4):
        assert np.abs(everyone - tally(set(range(4)) - {gone})).sum() <= 2
    if form in ("text under a collation", "whole numbers"):
        assert everyone.tolist() == [2, 2, 2, 2]
