"""Published files are read by pandas as the types that were meant."""

from contextlib import suppress
from threading import Event, Semaphore, Thread

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpcore.releases.table import Table, TableColumn, Uncertainty
from schemas.survey.columns import CategoricalColumn, IntegerColumn
from tasks.bundle.parquet import write_table, write_tables
from tasks.bundle.staging import open_to_readers, staging_folder


def test_whole_numbers_with_nulls_stay_whole_numbers(tmp_path):
    columns = {
        "children": np.ma.masked_array([1, 2, 3], mask=[False, True, False]),
        "age": np.array([4, 5, 6]),
        "region": np.ma.masked_array(np.array(["a", "b", "a"]), mask=[True, False, False]),
        "owner": np.ma.masked_array([True, False, True], mask=[False, False, True]),
    }
    table = Table("t", "x", [TableColumn(name, v, "text") for name, v in columns.items()])
    file = write_table(tmp_path, table, {}, {"dprelease.dataset": "d"})
    frame = pd.read_parquet(tmp_path / "t" / "x.parquet")
    assert str(frame["children"].dtype) == "Int64"
    assert frame["children"].isna().tolist() == [False, True, False]
    assert frame["age"].dtype == "int64"
    assert frame["region"].isna().tolist() == [True, False, False]
    assert frame["owner"].isna().tolist() == [False, False, True]
    assert file.columns == {
        "children": "int64",
        "age": "int64",
        "region": "string",
        "owner": "bool",
    }
    assert file.rows == 3


def test_columns_carry_what_the_plan_says_of_them(tmp_path):
    survey = {
        "age": IntegerColumn(type="integer", bounds=(0, 9), unit="years", description="Age"),
        "sex": CategoricalColumn(type="categorical", categories=["f", "m"], labels={"f": "female"}),
    }
    columns = [
        TableColumn("age_from", np.array([0, 5]), "age at least", "age"),
        TableColumn("sex", np.array(["f", "m"]), "Category of sex", "sex"),
        TableColumn("count", np.array([1, 2]), "Records"),
    ]
    table = Table("t", "x", columns)
    file = write_table(tmp_path, table, survey, {"dprelease.release_id": "r1"})
    schema = pq.read_schema(tmp_path / "t" / "x.parquet")
    assert schema.metadata[b"dprelease.release_id"] == b"r1"
    assert schema.field("age_from").metadata == {
        b"description": b"age at least: Age",
        b"column": b"age",
        b"unit": b"years",
    }
    assert schema.field("sex").metadata[b"labels"] == b'{"f": "female"}'
    assert schema.field("count").metadata == {b"description": b"Records"}
    assert file.descriptions["age_from"] == "age at least: Age"
    assert file.about == {"age_from": "age", "sex": "sex"}


def test_a_folder_that_hands_its_group_on_is_shared_by_the_group(tmp_path):
    modes = []
    for above in (0o750, 0o2770, 0o2750):
        shared = tmp_path / str(above)
        shared.mkdir()
        shared.chmod(above)
        with staging_folder(shared / "survey" / "r1") as staging:
            table = Table("tables", "counts", [TableColumn("count", np.array([3]), "How many")])
            write_table(staging, table, {}, {})
            open_to_readers(staging)
            places = (
                staging.parent,
                staging,
                staging / "tables",
                staging / "tables/counts.parquet",
            )
            modes.append([path.stat().st_mode & 0o7777 for path in places])
    assert modes == [
        [0o750, 0o750, 0o750, 0o640],
        [0o2770, 0o2750, 0o2750, 0o640],
        [0o2750, 0o2750, 0o2750, 0o640],
    ]


def test_a_run_that_is_being_ended_leaves_no_folder_though_tasks_still_write(tmp_path):
    """A task may begin to write after the folder was removed, and while it is removed."""
    table = Table("tables", "counts", [TableColumn("count", np.array([3, 4]), "How many")])
    with staging_folder(tmp_path / "survey" / "r1") as staging:
        write_table(staging, table, {}, {})
        stopped, tried = Event(), Semaphore(0)

        def write_on() -> None:
            while not stopped.is_set():
                with suppress(OSError):
                    write_table(staging, table, {}, {})
                tried.release()

        writers = [Thread(target=write_on) for _ in range(2)]
        for writer in writers:
            writer.start()
    while tried.acquire(blocking=False):
        pass  # what was tried while the folder was removed
    for _ in range(20):
        tried.acquire()
    stopped.set()
    for writer in writers:
        writer.join()
    assert [*(tmp_path / "survey").iterdir()] == []


@pytest.mark.slow
def test_a_replicate_of_a_cell_takes_less_than_three_bytes_and_reads_as_a_number(tmp_path):
    generator, cells = np.random.default_rng(0), 40_000
    counts = generator.gamma(0.1, 50, cells) + generator.normal(0, 30, cells)
    stated = Uncertainty("estimate", None, None, "exact", "")
    table = Table("tables", "t", [TableColumn("estimate", counts, "Estimate")], (stated,))
    noise = {"t": generator.normal(0, 30, (20, cells)).astype(np.float32)}
    file = write_tables(tmp_path, "t", [table], {}, {}, noise)
    assert file.replicates.bytes < 3 * 20 * cells
    path = tmp_path / file.replicates.path
    frame, other = pd.read_parquet(path), duckdb.sql(f"FROM '{path}'").df()
    pd.testing.assert_frame_equal(frame, other)
    assert frame["replicate_07"].to_numpy() == pytest.approx(counts + noise["t"][6], abs=0.01)


def test_a_table_that_comes_in_blocks_is_the_file_that_it_would_be_at_once(tmp_path):
    def table(rows: slice) -> Table:
        null = np.arange(600) >= 400
        columns = {
            "age": np.arange(600),
            "children": np.ma.masked_array(np.arange(600) % 4, mask=null),
            "region": np.ma.masked_array(np.array(["a", "bb"] * 300), mask=null),
        }
        parts = [TableColumn(name, v[rows], "text", name) for name, v in columns.items()]
        return Table("microdata", "x", parts)

    number = {"type": "integer", "bounds": (0, 600)}
    survey = {
        "age": IntegerColumn(**number),
        "children": IntegerColumn(**number, nullable=True),
        "region": CategoricalColumn(type="categorical", categories=["a", "bb"], nullable=True),
    }
    whole = write_table(tmp_path, table(slice(None)), survey, {})
    expected, schema = pd.read_parquet(tmp_path / whole.path), pq.read_schema(tmp_path / whole.path)
    blocks = map(table, (slice(0, 200), slice(200, 400), slice(400, 600)))
    file = write_table(tmp_path, next(blocks), survey, {}, blocks)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / file.path), expected)
    assert pq.read_schema(tmp_path / file.path).equals(schema)
    assert (file.rows, file.columns) == (600, whole.columns)
