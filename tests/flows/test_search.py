"""The search for leaks finds what was planted, however it was written."""

import base64
import gzip
import json
import pickle
import sqlite3
import zlib

import pandas as pd
import pyarrow as pa
import pytest

from tests.flows.search import occurrences

WORD, ACCENTED, NUMBER, AMOUNT = "Secret-7391", "Geheimnis-Änne", 8675309, 7391.4825


def packed(codec: str, plain: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(plain)
    return sink.getvalue().to_pybytes()


WAYS = {
    "plain": lambda value: f"x {value} y".encode(),
    "capitals": lambda value: f"x {value} y".upper().encode(),
    "json": lambda value: json.dumps({"x": [value]}).encode(),
    "pickle": lambda value: pickle.dumps({"x": [value]}),
    "old pickle": lambda value: pickle.dumps([value], 2),
    "utf-16": lambda value: f"{value}".encode("utf-16"),
    "hex": lambda value: f"{value}".encode().hex().encode(),
    **{
        f"base64 at {shift}": lambda value, shift=shift: base64.b64encode(
            b"?" * shift + f"{value}, and more".encode()
        )
        for shift in range(3)
    },
    "gzip": lambda value: b"head" + gzip.compress(f"{value}".encode()),
    "zlib": lambda value: b"head" + zlib.compress(f"{value}".encode()),
    "zstd": lambda value: b"head" + packed("zstd", f"{value}".encode()),
    "base64 of a compressed pickle": lambda value: json.dumps(
        {"result": base64.b64encode(zlib.compress(pickle.dumps(value))).decode()}
    ).encode(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_planted_value_is_found(tmp_path, way):
    (tmp_path / "file").write_bytes(WAYS[way]("nothing of the kind"))
    assert occurrences(tmp_path, [WORD, ACCENTED, NUMBER, AMOUNT]) == []
    for value in (WORD, ACCENTED, NUMBER, AMOUNT):
        (tmp_path / "file").write_bytes(WAYS[way](value))
        assert occurrences(tmp_path, [value]) == [str(tmp_path / "file")], value


@pytest.mark.parametrize("value", [WORD, AMOUNT])
def test_in_a_compressed_parquet_file(tmp_path, value):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"x": [value] * 9}).to_parquet(path, compression="zstd")
    assert occurrences(tmp_path, [value]) == [str(path)]
    assert occurrences(tmp_path, ["Secret-1111", 1234567, 1234.5678]) == []


def test_in_a_long_cell_of_a_database_and_in_a_name(tmp_path):
    with sqlite3.connect(tmp_path / "prefect.db") as connection:
        connection.execute("CREATE TABLE log (message TEXT)")
        # Over the end of the first page, which only the cell as a whole shows.
        for length in range(3990, 4100, 5):
            connection.execute("INSERT INTO log VALUES (?)", ["x" * length + WORD + "y" * 9000])
    assert occurrences(tmp_path, [WORD]) == [str(tmp_path / "prefect.db")]
    (tmp_path / WORD).touch()
    assert f"{tmp_path / WORD} (its name)" in occurrences(tmp_path, [WORD])
