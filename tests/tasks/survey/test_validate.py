"""Validation reports every broken rule by column and count, and never a value."""

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

from dpcore.errors import DataError, InputError
from schemas.survey.columns import Column, IdentifierColumn
from schemas.survey.unit import COUNT, WEIGHT
from tasks.survey.ingest import ingest
from tasks.survey.validate import IDENTIFIERS, INVALID, REMEDIES, WEIGHTS, validate
from tests.tasks.survey.tables import assert_tells_nothing, column, write


def made(tmp_path: Path, select: str, columns: Mapping[str, Column]) -> Path:
    """The survey file of a made-up table."""
    source = write(tmp_path / "t.parquet", select)
    ((rows,),) = duckdb.execute(f"SELECT count(*) FROM '{source}'").fetchall()
    return ingest(source, columns, rows, tmp_path / "work")


def broken(database: Path, columns: Mapping[str, Column]) -> list[tuple[str, str, int]]:
    """The (column, rule, rows) of a report."""
    try:
        validate(database, columns)
    except DataError as error:
        assert_tells_nothing(error)
        told = {f"  {remedy}" for remedy in (*REMEDIES.values(), IDENTIFIERS, WEIGHTS, INVALID)}
        lines = [line for line in str(error).splitlines()[1:] if line not in told]
        return [(w[1].strip("',"), w[2].strip(":"), int(w[3])) for w in map(str.split, lines)]
    return []


WHOLE = column("integer", bounds=(0, 100))
REAL = column("continuous", bounds=(0.0, 1.0))
TEXT = column("categorical", categories=["a", "b"])
CODE = column("categorical", categories=[1, 2])
SHARE = column("categorical", categories=[0.1, 0.30000000000000004])
LEVEL = column("integer", levels=[0, 12000, 30000])
DOSE = column("continuous", levels=[0.1, 0.30000000000000004])
TRUTH = column("categorical", categories=[True])


def nullable(of: Column) -> Column:
    return of.model_copy(update={"nullable": True})


FAULTS = [
    (WHOLE, "'SECRET_7391'", "type"),
    (WHOLE, "'3.7'", "type"),
    (WHOLE, "NULL::INTEGER", "null"),
    (WHOLE, "987654321", "bounds"),
    (WHOLE, "'99987654321999999999'", "bounds"),
    (WHOLE, "-1", "bounds"),
    (REAL, "'SECRET_7391'", "type"),
    (REAL, "NULL::DOUBLE", "null"),
    (REAL, "987654321", "bounds"),
    (REAL, "1.0000000000000002::DOUBLE", "bounds"),
    (REAL, "'nan'::DOUBLE", "finite"),
    (REAL, "'inf'::DOUBLE", "finite"),
    (REAL, "'-inf'::DOUBLE", "finite"),
    (TEXT, "'SECRET_7391'", "category"),
    (TEXT, "'A'", "category"),
    (TEXT, "''", "category"),
    (TEXT, "NULL::VARCHAR", "null"),
    (TEXT, "'SECRET_7391'::BLOB", "type"),
    (CODE, "987654321", "category"),
    (CODE, "'SECRET_7391'", "type"),
    (SHARE, "0.3::DOUBLE", "category"),
    (SHARE, "'nan'::DOUBLE", "category"),
    (LEVEL, "11999", "category"),
    (LEVEL, "30001", "category"),
    (LEVEL, "'SECRET_7391'", "type"),
    (DOSE, "0.3::DOUBLE", "category"),
    (DOSE, "'nan'::DOUBLE", "category"),
    (TRUTH, "false", "category"),
    (TRUTH, "987654321", "type"),
]


@pytest.mark.slow
@pytest.mark.parametrize("may_be_null", [False, True])
def test_each_fault_is_one_rule_and_shows_no_value(may_be_null, tmp_path):
    """Where null is a value, it is not a fault, and every other fault still is one."""
    columns = {f"x{i}": nullable(of) if may_be_null else of for i, (of, *_) in enumerate(FAULTS)}
    values = [f"unnest([{value}, {value}]) AS x{i}" for i, (_, value, _) in enumerate(FAULTS)]
    database = made(tmp_path, f"SELECT {', '.join(values)}", columns)
    expected = [(name, rule, 2) for name, (*_, rule) in zip(columns, FAULTS, strict=True)]
    if may_be_null:
        expected = [fault for fault in expected if fault[1] != "null"]
    assert broken(database, columns) == expected


VALID = [
    (WHOLE, "[0, 100]"),
    (REAL, "[0.0, 1.0, -0.0]::DOUBLE[]"),
    (column("continuous", bounds=(0.1, 0.30000000000000004)), "['0.1', '0.30000000000000004']"),
    (column("continuous", bounds=(-1e-300, 9e299)), "['-1e-300', '9e299']"),
    (column("integer", bounds=(-(2**53), 2**53)), f"[-{2**53}, {2**53}]"),
    (TEXT, "['a', 'b']"),
    (CODE, "['1', '2.0']"),
    (SHARE, "['0.1', '0.30000000000000004']"),
    (TRUTH, "[true]"),
    (LEVEL, "[0, 12000, 30000]"),
    (DOSE, "['0.1', '0.30000000000000004']"),
]


def test_the_bounds_themselves_and_every_category_pass(tmp_path):
    columns = {f"x{i}": nullable(of) for i, (of, _) in enumerate(VALID)}
    select = ", ".join(f"unnest({values}) AS x{i}" for i, (_, values) in enumerate(VALID))
    assert broken(made(tmp_path, f"SELECT {select}", columns), columns) == []


def test_clamped_values_pass_but_nan_does_not(tmp_path):
    columns = {"x": column("continuous", bounds=(0.1, 0.3), outside="clamp")}
    select = "SELECT unnest(['-7', '7', 'nan', '-inf']::DOUBLE[]) AS x"
    assert broken(made(tmp_path, select, columns), columns) == [("x", "finite", 2)]


def test_all_faults_of_all_columns_are_reported_together(tmp_path):
    columns = {"the income": nullable(REAL), "age": WHOLE, "sex": TEXT}
    select = """SELECT unnest(['0.5', '2', 'nan', '', 'SECRET_7391', NULL]) AS "the income",
        unnest(['7', NULL, '987654321', '8.5', 'x', '101']) AS age,
        unnest(['a', 'b', 'A', NULL, 'b', 'SECRET_7391']) AS sex"""
    database = made(tmp_path, select, columns)
    with pytest.raises(DataError) as caught:
        validate(database, columns)
    assert str(caught.value).splitlines() == [
        "the survey table is not as the plan declares:",
        "  column 'the income', type: 2 rows cannot be read as the declared type: 2 text (use"
        " `type: categorical`, or list the codes that mean no answer under `missing`)",
        "  column 'the income', bounds: 1 row outside the bounds",
        "  column 'the income', finite: 1 row NaN or infinite",
        "  column 'age', type: 2 rows cannot be read as the declared type: 1 with decimals (use"
        " `type: continuous`), 1 text (use `type: categorical`, or list the codes that mean no answer"
        " under `missing`)",
        "  column 'age', null: 1 row missing, but the column is not nullable",
        "  column 'age', bounds: 2 rows outside the bounds",
        "  column 'sex', null: 1 row missing, but the column is not nullable",
        "  column 'sex', category: 2 rows not a listed category",
        *(f"  {remedy}" for remedy in (*REMEDIES.values(), INVALID)),
    ]
    assert_tells_nothing(caught.value)


YEAR = {"column": "x", "part": "year"}
LOOKS = [
    (WHOLE, "['7.5', '1e-3', '0.1']", "3 with decimals (use `type: continuous`)"),
    (CODE, "[7.5]::DECIMAL(5, 2)[]", "1 with decimals (use `type: continuous`)"),
    (
        WHOLE,
        "['1,5', '1.234,5', '12%', '1 234']",
        "4 with separators, a decimal comma or a percent",
    ),
    (
        REAL,
        "['31.12.2024', '2024/01/31', '2024-01-31 17:30']",
        "3 dates (`from` reads their parts)",
    ),
    (WHOLE, "['SECRET_7391', '', '1..2']", "3 text (use `type: categorical`, or list the codes"),
    (TRUTH, "['yes', '7']", "1 numbers other than 0 and 1, 1 text other than true and false"),
    (
        YEAR,
        "['20240131', '1/31/2024', '2024-02-30', '7', 'x']",
        "3 dates in another form (state `format`; the offset must be Z)",
    ),
    (YEAR, "['20240131', '7', 'x']", "1 numbers, 1 text"),
]


@pytest.mark.parametrize(("of", "values", "says"), LOOKS)
def test_what_cannot_be_read_is_said_to_be_what_it_looks_like(of, values, says, tmp_path):
    if of is YEAR:
        of = column("integer", bounds=(1900, 2100), **{"from": YEAR})
    with pytest.raises(DataError) as caught:
        validate(made(tmp_path, f"SELECT unnest({values}) AS x", {"x": of}), {"x": of})
    line = next(line for line in str(caught.value).splitlines() if "'x', type" in line)
    assert says in line
    assert_tells_nothing(caught.value)


def test_everything_that_does_not_fit_is_said_at_once(tmp_path):
    columns = {"age": WHOLE, "sex": TEXT, "wage": REAL, "agee": WHOLE, "n": COUNT}
    written = (
        "SELECT unnest([1.5, 200, 3]) AS age, unnest(['a', 'SECRET_7391', 'b']) AS sex, 1 AS Wage"
    )
    source = write(tmp_path / "t.parquet", written)
    database = ingest(source, columns, 4, tmp_path / "work")
    with pytest.raises(DataError) as caught:
        validate(database, columns)
    assert [line.partition(" (")[0] for line in str(caught.value).splitlines()[1:7]] == [
        "  column 'wage': the table lacks it",
        "  column 'agee': the table lacks it",
        "  column 'n': the table lacks it",
        "  the table does not have the 4 records that `rows` in the plan states; count the records at"
        " the source and correct the plan",
        "  column 'age', type: 1 row cannot be read as the declared type: 1 with decimals",
        "  column 'age', bounds: 1 row outside the bounds",
    ]
    assert "did you mean 'age' or 'Wage'?" in str(caught.value)
    assert "'sex', category: 1 row" in str(caught.value)
    assert_tells_nothing(caught.value)


def test_another_rule_for_values_refuses_none_and_still_needs_columns_and_rows(tmp_path):
    source, columns = write(tmp_path / "t.parquet", "SELECT unnest([7.5, 200]) AS x"), {"x": WHOLE}
    validate(ingest(source, columns, 2, tmp_path / "work"), columns, "clamp")
    database = ingest(source, columns | {"y": WHOLE}, 3, tmp_path / "work")
    with pytest.raises(DataError) as caught:
        validate(database, columns | {"y": WHOLE}, "own-cell")
    lacking, rows = str(caught.value).splitlines()[1:]
    assert "'y': the table lacks it" in lacking
    assert "the 3 records" in rows


def test_a_weight_is_told_its_own_remedy(tmp_path):
    column = WEIGHT
    with pytest.raises(DataError, match="'w', bounds: 1 row") as caught:
        validate(made(tmp_path, "SELECT -1 AS w", {"w": column}), {"w": column})
    assert str(caught.value).splitlines()[2:] == [f"  {WEIGHTS}"]


def test_a_privacy_unit_without_an_identifier_is_told_its_own_remedy(tmp_path):
    columns = {"home": IdentifierColumn(), "x": REAL}
    select = "SELECT unnest(['a', NULL]) AS home, unnest([0.2, 0.2]) AS x"
    with pytest.raises(DataError) as caught:
        validate(made(tmp_path, select, columns), columns)
    assert str(caught.value).splitlines()[2:] == [f"  {IDENTIFIERS}"]


def test_an_empty_table_has_no_faults(tmp_path):
    columns = {"x": WHOLE}
    assert broken(made(tmp_path, "SELECT 1 AS x WHERE false", columns), columns) == []


def test_switching_pandera_off_does_not_switch_the_checks_off(tmp_path, monkeypatch):
    from pandera.config import ValidationDepth, config_context

    database = made(tmp_path, "SELECT 'SECRET_7391' AS x", {"x": TEXT})
    with config_context(validation_enabled=False, validation_depth=ValidationDepth.SCHEMA_ONLY):
        assert broken(database, {"x": TEXT}) == [("x", "category", 1)]


def test_a_file_of_another_plan_is_refused(tmp_path):
    database = made(tmp_path, "SELECT 1 AS x, 'a' AS y", {"x": WHOLE, "y": TEXT})
    with pytest.raises(DataError, match="other columns than the plan"):
        validate(database, {"x": WHOLE})
    with pytest.raises(DataError, match="other types than the plan"):
        validate(database, {"x": REAL, "y": TEXT})
    with pytest.raises(InputError, match=r"nothing\.duckdb: cannot be opened"):
        validate(tmp_path / "nothing.duckdb", {"x": WHOLE})


def test_a_first_line_that_may_be_a_record_is_not_quoted(tmp_path):
    (tmp_path / "t.csv").write_text("Mr. SECRET_7391,a\n2,b\n")
    with pytest.raises(DataError) as caught:
        ingest(str(tmp_path / "t.csv"), {"Mr. SECRET_739": TEXT}, 2, tmp_path / "work")
    assert "the table lacks it" in str(caught.value)
    assert_tells_nothing(caught.value)


def test_a_value_that_a_questionnaire_divides_at_its_equals_sign_is_asked_for_in_quotes(tmp_path):
    """From the plan's labels alone, whatever the table holds."""
    cut = column("categorical", categories=["a", "x"], labels={"x": "y"}, nullable=True)
    database = made(tmp_path, "SELECT unnest(['a', 'x=y', 'x=y']) AS g", {"g": cut})
    with pytest.raises(DataError, match='if x=y is one value, write it as "x=y" in the'):
        validate(database, {"g": cut})
    labelled = cut.model_copy(update={"labels": {"x": "y", "a": "b"}})
    with pytest.raises(DataError) as caught:
        validate(database, {"g": labelled})
    assert "one value" not in str(caught.value)
