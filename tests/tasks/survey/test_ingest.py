"""Ingest keeps the plan's columns, converts without loss, and says nothing of the values."""

import gzip
import os
import stat
from itertools import permutations
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpcore.domain.adjacency import Adjacency
from dpcore.errors import DataError, InputError
from schemas.survey.columns import Column
from schemas.survey.source import TableSource
from tasks.survey import private_file
from tasks.survey.ingest import ingest
from tasks.survey.private_file import connect
from tasks.survey.reading import open_survey
from tasks.survey.validate import validate
from tests.tasks.survey.tables import assert_tells_nothing, column, csv, write

TEXT = column("categorical", categories=["0170", "a", "b"], nullable=True)
WHOLE = column("integer", bounds=(0, 100), nullable=True)
REAL = column("continuous", bounds=(0.0, 1.0), nullable=True)
TRUTH = column("categorical", categories=[True, False], nullable=True)


def contents(database: Path) -> list[tuple[object, ...]]:
    with connect(database) as connection:
        return connection.execute("FROM survey").fetchall()


def faults(database: Path) -> dict[str, int]:
    with connect(database) as connection:
        counted = "SELECT name, sum(failures)::BIGINT FROM conversion GROUP BY name"
        return dict(connection.execute(counted).fetchall())


def values(tmp_path: Path, source: str, of: Column, rows: int) -> tuple[list[object], int]:
    """The column x after ingest, and how many values could not be converted."""
    database = ingest(source, {"x": of}, rows, tmp_path / "work")
    return [x for (x,) in contents(database)], faults(database)["x"]


# Where tables come from


@pytest.mark.slow
def test_the_same_table_from_every_kind_of_source(tmp_path):
    select = (
        "SELECT * FROM (VALUES ('a', 1, 0.25), ('0170', 2, 0.5), (NULL, NULL, NULL)) t(s, i, r)"
    )
    database = str(tmp_path / "agency.duckdb")
    with duckdb.connect(database) as connection:
        connection.execute(f'CREATE TABLE "the table; 1" AS {select}')
    (tmp_path / "t.CSV.gz").write_bytes(
        gzip.compress(b'\xef\xbb\xbfs,i,r\r\na,1,0.25\r\n"0170",2.0,5e-1\r\n"",,')
    )
    sources = [
        write(tmp_path / "t.parquet", select),
        write(tmp_path / "t.csv", select),
        str(tmp_path / "t.CSV.gz"),
        csv(tmp_path / "semicolons.csv", "r;s;i\n0.25;a;1\n.50;0170;2\n;;\n"),
        TableSource(database=database, table="the table; 1"),
    ]
    for source in sources:
        made = ingest(source, {"s": TEXT, "i": WHOLE, "r": REAL}, 3, tmp_path / "work")
        assert made == tmp_path / "work" / "survey.duckdb"
        assert sorted(contents(made), key=str) == [
            ("0170", 2, 0.5),
            ("a", 1, 0.25),
            (None, None, None),
        ], source
        assert set(faults(made).values()) == {0}


def test_a_file_inside_an_installed_package(tmp_path):
    pytest.importorskip("statsmodels")
    columns = {"age": column("continuous", bounds=(17.5, 42.0))}
    source = "package://statsmodels/datasets/fair/fair.csv"
    assert len(contents(ingest(source, columns, 6366, tmp_path))) == 6366


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nowhere/survey.parquet", "nowhere/survey.parquet: there is no such file"),
        ("survey.ods", "must be a file that ends with .parquet, .csv,"),
        ("bad\0name.csv", "there is no such file|cannot be opened"),
        ("package://statsmodels/../../secret.csv", "must have the form"),
        ("package://no_such_package_7/x.csv", "pip install no_such_package_7"),
        (TableSource(database="nowhere.duckdb", table="t"), "nowhere.duckdb: there is no such"),
    ],
)
def test_a_source_that_cannot_be_found_is_named(source, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        ingest(source, {"x": TEXT}, 1, tmp_path / "work")


@pytest.mark.slow
def test_a_name_with_brackets_is_one_file_not_a_pattern(tmp_path):
    (tmp_path / "survey1.csv").write_text("x\nb\n")
    assert values(tmp_path, csv(tmp_path / "survey[1].csv", "x\na\n"), TEXT, 1) == (["a"], 0)
    assert values(tmp_path, csv(tmp_path / "it's*.csv", "x\na\n"), TEXT, 1) == (["a"], 0)


# What becomes of values


def test_codes_keep_their_zeros_and_blanks(tmp_path):
    source = csv(tmp_path / "t.csv", "x\n0170\n170\n a\n#b\n")
    assert values(tmp_path, source, TEXT, 4) == (["0170", "170", " a", "#b"], 0)


def test_an_empty_field_is_null_even_alone_on_its_line(tmp_path):
    assert values(tmp_path, csv(tmp_path / "t.csv", 'x\n1\n\n""\n'), WHOLE, 3) == (
        [1, None, None],
        0,
    )


def test_whole_numbers_may_be_written_in_several_ways(tmp_path):
    source = csv(tmp_path / "t.csv", "x\n3\n3.0\n3.\n +3 \n3e0\n03\n3.000\n0.3e1\n")
    assert values(tmp_path, source, WHOLE, 8) == ([3] * 8, 0)


NO_NUMBERS = ["abc", "NA", "1_000", '"1,5"', "0x10"]
NOT_WHOLE = ["3.7", "1_0", "1.25e1", "--3", "nan", "2.0000000000000000001"]


@pytest.mark.parametrize(("of", "wrong"), [(WHOLE, NO_NUMBERS + NOT_WHOLE), (REAL, NO_NUMBERS)])
def test_what_is_no_number_of_the_kind_is_counted_and_not_rounded(of, wrong, tmp_path):
    source = csv(tmp_path / "t.csv", "\n".join(["x", *wrong, "1"]) + "\n")
    assert values(tmp_path, source, of, len(wrong) + 1) == ([None] * len(wrong) + [1], len(wrong))


SAME = [
    ("3.0::DOUBLE", WHOLE, 3),
    ("3.0::FLOAT", WHOLE, 3),
    ("3.00::DECIMAL(5, 2)", WHOLE, 3),
    ("3::UTINYINT", WHOLE, 3),
    ("3::UHUGEINT", WHOLE, 3),
    ("true", WHOLE, 1),
    ("3::INTEGER", TEXT, "3"),
    ("DATE '2020-02-01'", TEXT, "2020-02-01"),
    ("'a'::ENUM('a', 'b')", TEXT, "a"),
    ("'3.0'::ENUM('3.0')", WHOLE, 3),
    ("1::TINYINT", TRUTH, True),
    ("0.0::DOUBLE", TRUTH, False),
    ("'TRUE'", TRUTH, True),
    ("1::BIGINT", REAL, 1.0),
    ("0.25::DECIMAL(5, 2)", REAL, 0.25),
]
LOST = [
    ("3.7::DOUBLE", WHOLE),
    ("3.7::DECIMAL(5, 2)", WHOLE),
    ("'nan'::DOUBLE", WHOLE),
    ("'inf'::FLOAT", WHOLE),
    ("DATE '2020-02-01'", WHOLE),
    ("9007199254740992::DOUBLE", TEXT),
    ("'nan'::FLOAT", TEXT),
    ("'a'::BLOB", TEXT),
    ("[1]", TEXT),
    ("{'a': 1}", REAL),
    ("2", TRUTH),
    ("'maybe'", TRUTH),
]


@pytest.mark.slow
def test_a_type_that_cannot_hold_the_value_is_counted_and_any_other_gives_it(tmp_path):
    read = [*SAME, *((written, of, None) for written, of in LOST)]
    select = ", ".join(f"{written} AS x{i}" for i, (written, *_) in enumerate(read))
    source = write(tmp_path / "t.parquet", f"SELECT {select}")
    columns = {f"x{i}": of for i, (_, of, _) in enumerate(read)}
    database = ingest(source, columns, 1, tmp_path / "work")
    for name, found, (written, _, expected) in zip(columns, *contents(database), read, strict=True):
        assert found == expected, written
        assert faults(database)[name] == (expected is None), written


def test_clamping_moves_values_and_leaves_null_and_nan(tmp_path):
    clamped = column("continuous", bounds=(0.1, 0.3), outside="clamp", nullable=True)
    written = "['-1', '5', '0.2', 'nan', 'inf', NULL]::DOUBLE[]"
    source = write(tmp_path / "t.parquet", f"SELECT unnest({written}) AS x")
    found, wrong = values(tmp_path, source, clamped, 6)
    assert sorted(map(repr, found)) == sorted(["0.1", "0.3", "0.2", "nan", "inf", "None"])
    assert wrong == 0


@pytest.mark.parametrize(
    ("written", "of", "expected"),
    [
        ("['-9', '-9.0', 'NA', '3', NULL]", "integer", [None, None, None, 3, None]),
        ("['-9', '9e0', 'NA', 'na', '3']", "continuous", [None, 9.0, None, None, 3.0]),
        ("[-9, 3, NULL]::INTEGER[]", "integer", [None, 3, None]),
        ("['-9', 'nan', '3']::FLOAT[]", "continuous", [None, "nan", 3.0]),
        ("[-9, 3]::DECIMAL(5, 2)[]", "continuous", [None, 3.0]),
        ("['-9', 'a', 'NA', ' NA', '']", "categorical", [None, "a", None, " NA", ""]),
    ],
)
def test_codes_of_no_answer_are_null_and_no_faults(written, of, expected, tmp_path):
    more = {"categories": ["a"]} if of == "categorical" else {"bounds": (0, 9)}
    coded = column(of, missing=[-9, "NA"], **more)
    source = write(tmp_path / "t.parquet", f"SELECT unnest({written}) AS x")
    found, wrong = values(tmp_path, source, coded, len(expected))
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert wrong == ("'na'" in written)  # what is neither a code nor a number


NOT_NUMBERS = [
    ("['1', 'nan', '3']::DOUBLE[]", "integer", [1, 3, None]),
    ("['1', 'nan', 'inf']::FLOAT[]", "continuous", [1.0, None, "inf"]),
    ("['1', 'NaN', 'nan ', 'NAN', 'nano']", "continuous", [1.0, None, None, None, None]),
    ("['a', 'NaN', 'nan', 'nano']", "categorical", [None, None, "a", "nano"]),
    ("['1', 'nan']::DOUBLE[]", "categorical", ["1", None]),
    ("[1, 3]::INTEGER[]", "integer", [1, 3]),
]


@pytest.mark.parametrize(("written", "of", "expected"), NOT_NUMBERS)
def test_a_float_that_is_no_number_may_be_a_code_of_no_answer(written, of, expected, tmp_path):
    more = {"categories": ["a"]} if of == "categorical" else {"bounds": (0, 9)}
    coded = column(of, missing=[float("nan")], **more)
    assert coded.model_dump(mode="json")["missing"] == ["NaN"]
    source = write(tmp_path / "t.parquet", f"SELECT unnest({written}) AS x")
    found, wrong = values(tmp_path, source, coded, len(expected))
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert wrong == (of == "continuous" and "nano" in written)


@pytest.mark.slow
def test_a_float_that_is_no_number_stops_the_reading_of_no_other(tmp_path):
    """A Parquet file's smallest and largest value are of its numbers alone."""
    written = pa.table({"x": [1.0, float("nan"), 2.0, None, 0.5]})
    parquet.write_table(written, tmp_path / "t.parquet")
    for of, known in ((TEXT, "1"), (WHOLE, 1), (REAL, 1.0), (TRUTH, True)):
        coded = of.model_copy(update={"missing": ["NA", "2"]})
        found, wrong = values(tmp_path, str(tmp_path / "t.parquet"), coded, 5)
        assert found[0] == known
        assert found[2:4] == [None, None]
        assert wrong == (0 if of is REAL else 1 if of is TEXT else 2)


@pytest.mark.slow
def test_whole_numbers_too_large_for_the_machine_are_clamped_or_stay_outside(tmp_path):
    source = csv(tmp_path / "t.csv", "x\n-5\n50\n1e30\n99999999999999999999\n\n")
    clamped = column("integer", bounds=(0, 100), outside="clamp", nullable=True)
    assert values(tmp_path, source, clamped, 5) == ([0, 50, 100, 100, None], 0)
    assert values(tmp_path, source, WHOLE, 5) == ([-5, 50, 2**63 - 1, 2**63 - 1, None], 0)


# The file


def test_only_the_plans_columns_are_copied(tmp_path):
    source = write(tmp_path / "t.parquet", "SELECT 'a' AS x, 'SECRET_7391' AS name, 1 AS \"X y\"")
    database = ingest(source, {"x": TEXT}, 1, tmp_path / "work")
    with connect(database) as connection:
        tables = connection.execute("SELECT table_name, column_name FROM duckdb_columns()")
        assert [row for row in tables.fetchall() if row[0] == "survey"] == [("survey", "x")]
    assert b"SECRET_7391" not in database.read_bytes()


def test_only_the_owner_can_read_the_file_and_enter_the_folder(tmp_path):
    (tmp_path / "work").mkdir(mode=0o755)
    source = csv(tmp_path / "t.csv", "x\na\n")
    before = os.umask(0)
    try:
        database = ingest(source, {"x": TEXT}, 1, tmp_path / "work")
    finally:
        os.umask(before)
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert stat.S_IMODE(database.parent.stat().st_mode) == 0o700
    assert [path.name for path in database.parent.iterdir()] == ["survey.duckdb"]


@pytest.mark.slow
def test_a_second_attempt_replaces_the_first_and_what_a_crash_left(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "survey.duckdb.partial").write_text("half a file")
    source = csv(tmp_path / "t.csv", "x\na\n")
    for _ in range(2):
        assert values(tmp_path, source, TEXT, 1) == (["a"], 0)


def test_duckdb_spills_beside_the_file_and_prints_nothing(tmp_path):
    database = ingest(csv(tmp_path / "t.csv", "x\na\n"), {"x": TEXT}, 1, tmp_path / "work")
    with connect(database) as connection:
        settings = connection.execute(
            "SELECT current_setting('temp_directory'), current_setting('enable_progress_bar')"
        )
        assert settings.fetchone() == (str(tmp_path / "work" / "spill"), False)


# Refusals, which say nothing of the values


def test_missing_columns_are_named_all_at_once(tmp_path):
    source = csv(tmp_path / "t.csv", "X,y \nSECRET_7391,987654321\n")
    with pytest.raises(DataError, match=r"'x': the table lacks it.*\n.*'y': the table") as caught:
        ingest(source, {"x": TEXT, "y": TEXT}, 1, tmp_path / "work")
    assert_tells_nothing(caught.value)


def test_columns_that_differ_in_capitals_are_told_apart(tmp_path):
    source = csv(tmp_path / "t.csv", "X,x\na,b\n")
    assert values(tmp_path, source, TEXT, 1) == (["b"], 0)
    with pytest.raises(DataError, match="two columns 'x'"):
        ingest(csv(tmp_path / "u.csv", "x,x\na,b\n"), {"x": TEXT}, 1, tmp_path / "work")


@pytest.mark.parametrize("names", [["x", "X"], ["X", "x"]])
def test_columns_of_parquet_that_differ_in_capitals_are_told_apart(names, tmp_path):
    arrays = [pa.array([f"of {name}"]) for name in names]
    parquet.write_table(pa.Table.from_arrays(arrays, names=names), tmp_path / "t.parquet")
    assert values(tmp_path, str(tmp_path / "t.parquet"), TEXT, 1) == (["of x"], 0)


def test_a_column_that_stands_twice_in_parquet_is_refused(tmp_path):
    arrays = [pa.array(["a"]), pa.array(["b"])]
    parquet.write_table(pa.Table.from_arrays(arrays, names=["x", "x"]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="two columns 'x'"):
        ingest(str(tmp_path / "t.parquet"), {"x": TEXT}, 1, tmp_path / "work")


def test_an_empty_file_is_said_to_be_empty(tmp_path):
    with pytest.raises(DataError, match="the survey table is empty"):
        ingest(csv(tmp_path / "t.csv", ""), {"x": TEXT}, 1, tmp_path / "work")


def test_a_number_of_rows_that_is_private_is_not_looked_at(tmp_path):
    source = write(tmp_path / "t.parquet", "SELECT 'a' AS x FROM range(4711)")
    database = ingest(source, {"x": TEXT}, 4, tmp_path / "work", Adjacency("add-remove"))
    assert len(contents(database)) == 4711


def test_another_number_of_rows_is_refused_without_telling_it(tmp_path):
    source = write(tmp_path / "t.parquet", "SELECT 'a' AS x FROM range(4711)")
    with pytest.raises(DataError, match="does not have the 4000 records") as caught:
        validate(ingest(source, {"x": TEXT}, 4000, tmp_path / "work"), {"x": TEXT}, "drop")
    assert "4711" not in str(caught.value)
    assert_tells_nothing(caught.value)


LATE = b"x,y\n" + b'a,"b\nc"\n' * 9999
"""Each of its records has two lines."""


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("short.csv", b"x,y\na,b\nSECRET_7391\n", "line 3 has fewer fields"),
        ("long.csv", b"x,y\r\na,b\r\nSECRET_7391,c,d\r\n", "line 3 has more fields"),
        ("late.csv", LATE + b"SECRET_7391\n" + LATE, "line 20000 has fewer fields"),
        ("late.csv.gz", gzip.compress(LATE + b"SECRET_7391,c,d\n"), "line 20000 has more fields"),
        ("blank.csv", b"x,y\r\r\ra,b\rSECRET_7391\r", "line 5 has fewer fields"),
        ("mixed.csv", b"x,y\r\na,b\n\nSECRET_7391\n", "line 4 has fewer fields"),
        (
            "wide.csv",
            b"x,y\na,b\nc," + b"SECRET_7391" * 200_000,
            "line 3 is longer than two million",
        ),
        ("latin.csv", b"x,y\na,b\nSECRET_7391\xe9,b\n", "line 3 is not UTF-8"),
        ("latin_header.csv", b"x,SECRET_7391\xe9\na,b\n", "line 1 is not UTF-8"),
        ("utf16.csv", "x,y\nSECRET_7391,b\n".encode("utf-16"), "line 1 is not UTF-8"),
        ("quotes.csv", b'x,y\n"SECRET_7391"987654321,b\n', "line 2 has a quoted field"),
        ("open.csv", b'x,y\na,b\n"SECRET_7391,b\nc,d\n', "line 3 has a quoted field"),
        ("unzipped.csv.gz", b"x,y\nSECRET_7391,987654321\n", "is not a whole gzip file"),
        (
            "cut.csv.gz",
            gzip.compress(b"x,y\nSECRET_7391,987654321\n" * 9999)[:-40],
            "is not a whole gzip file",
        ),
        ("text.parquet", b"PAR1 SECRET_7391 987654321", "cannot be read as a Parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line_and_without_quoting_it(
    name, content, says, tmp_path
):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        ingest(str(tmp_path / name), {"x": TEXT}, 1, tmp_path / "work")
    assert name in str(caught.value)
    assert_tells_nothing(caught.value)
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("ends", "form"),
    [
        *((ends, "t.csv") for ends in permutations(("\n", "\r\n", "\r"))),
        (("\n", "\r\n", "\r"), "t.csv.gz"),
    ],
)
def test_lines_may_end_in_several_ways(form, ends, tmp_path):
    """A line end inside quotes is a part of its value, whatever ends the other lines."""
    first, second, third = ends
    written = f'x,y{first}a,"1\r\n2"{second}"b\r",2{third}c,3'.encode()
    (tmp_path / form).write_bytes(gzip.compress(written) if form.endswith("gz") else written)
    assert values(tmp_path, str(tmp_path / form), TEXT, 3) == (["a", "b\r", "c"], 0)
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["survey.duckdb"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ends", "beside", "read"),
    [
        ('"\n', "", True),
        ('"\n', 'a,5,5" pipe\n', True),
        ("\n", "", False),
        ('"\n', 'a,5,5" pipe\na,6,"no end\n', False),
        ('"\n', 'a,5,"no" "end\n', False),
    ],
)
def test_quoted_line_ends_where_the_parts_of_two_threads_meet(ends, beside, read, tmp_path):
    """A text of one record, even in a column that nobody reads, stops the reading of no other; but a
    quote without end, which one thread would accept, hides no record."""
    block, line, text = 8_000_000, "a,20,answer text\n", "5,77,a\n" * 40
    before = (block - len(text) // 2) // len(line)
    path = tmp_path / "t.csv"
    path.write_text(
        f'x,age,note\n{line * before}b,50,"{text}{ends}{line * before}{beside}{line * 9}'
    )
    rows = 2 * before + 10 + bool(beside)
    if read:
        found, wrong = values(tmp_path, str(path), TEXT, rows)
        assert (found.count("a"), found.count("b"), wrong) == (rows - 1, 1, 0)
    else:
        with pytest.raises(DataError):
            values(tmp_path, str(path), TEXT, rows)


def wide(path: Path, columns: int) -> tuple[str, dict[str, Column]]:
    names = [f"v{i}" for i in range(columns)]
    row = ",".join(["1"] * columns)
    source = csv(path, "\n".join([",".join(names), *[row] * 3_000]))
    return source, dict.fromkeys(names, WHOLE)


@pytest.mark.slow
def test_a_table_of_300_columns_needs_little_memory(tmp_path):
    source, columns = wide(tmp_path / "wide.csv", 300)
    made = ingest(source, columns, 3_000, tmp_path / "work")
    assert faults(made) == dict.fromkeys(columns, 0)
    assert contents(made) == [(1,) * 300] * 3_000


def test_too_little_memory_is_no_fault_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(private_file, "MEMORY_LIMIT", "8MiB")
    source, columns = wide(tmp_path / "wide.csv", 60)
    with pytest.raises(DataError, match="more than 8MiB of memory are needed") as caught:
        ingest(source, columns, 3_000, tmp_path / "work")
    assert "damaged" not in str(caught.value)


def test_wherever_memory_does_not_suffice_this_is_the_reason():
    def counted():
        raise duckdb.OutOfMemoryException("SECRET_7391")

    with pytest.raises(DataError, match="more than 2GiB of memory are needed") as caught:
        private_file.call_guarded(counted, DataError, "the survey table could not be tallied")
    assert_tells_nothing(caught.value)


def test_a_database_that_is_none_or_lacks_the_table(tmp_path):
    database = csv(tmp_path / "agency.duckdb", "SECRET_7391")
    with pytest.raises(InputError, match="is not a DuckDB database") as caught:
        ingest(TableSource(database=database, table="t"), {"x": TEXT}, 1, tmp_path / "work")
    assert_tells_nothing(caught.value)
    duckdb.connect(str(tmp_path / "empty.duckdb")).close()
    source = TableSource(database=str(tmp_path / "empty.duckdb"), table="t")
    with pytest.raises(InputError, match=r"there is no table 't'$"):
        ingest(source, {"x": TEXT}, 1, tmp_path / "work")


@pytest.mark.slow
def test_a_view_of_a_source_reads_no_other_file(tmp_path):
    """The plan names one file: what that file says never opens another."""
    database = str(tmp_path / "agency.duckdb")
    other = csv(tmp_path / "secret.csv", "x\n1")
    with duckdb.connect(database) as connection:
        connection.execute("CREATE TABLE t AS SELECT '1' AS x")
        connection.execute("CREATE VIEW inside AS SELECT x FROM t")
        connection.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{other}')")
    inside, outside = (TableSource(database=database, table=v) for v in ("inside", "outside"))
    assert contents(
        ingest(inside, {"x": column("integer", bounds=(0, 9))}, 1, tmp_path / "work")
    ) == [(1,)]
    with pytest.raises(InputError, match="it may read only tables of this file"):
        ingest(outside, {"x": TEXT}, 1, tmp_path / "work")


def test_nothing_opens_another_file_once_a_survey_is_ingested(tmp_path):
    source = csv(tmp_path / "survey.csv", "x\n1")
    made = ingest(source, {"x": TEXT}, 1, tmp_path / "work")
    with open_survey(made) as (table, *_):
        connection = table.get_backend().con
        for statement in (
            f"FROM read_csv('{source}')",
            f"COPY survey TO '{tmp_path}/copy.csv'",
            f"ATTACH '{tmp_path}/other.duckdb'",
            "SET enable_external_access = true",
            "SET temp_directory = '/tmp'",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)
