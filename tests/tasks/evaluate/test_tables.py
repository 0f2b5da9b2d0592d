"""Tables become cells as the page says."""

import numpy as np
import pandas as pd
import pytest

from dpcore.errors import InputError
from tasks.evaluate.tables import TablePair, read_pair, read_table


def pair(real: dict, synthetic: dict, most_cells: int = 4) -> TablePair:
    return TablePair(pd.DataFrame(real), pd.DataFrame(synthetic), (), most_cells)


def codes(real: list, synthetic: list) -> tuple[list[int], list[int], int]:
    one, other, sizes = pair({"x": real}, {"x": synthetic}).codes
    return one[:, 0].tolist(), other[:, 0].tolist(), sizes[0]


def test_many_numbers_are_cut_at_the_quantiles_of_the_real_table():
    real = list(np.arange(8.0))
    assert codes(real, [-5.0, 1.0, 1.75, 100.0, np.nan]) == (
        [0, 0, 1, 1, 2, 2, 3, 3],
        [0, 0, 1, 3, 4],
        5,
    )


def test_csv_and_parquet_of_the_same_records_do_not_differ(tmp_path):
    table = pd.DataFrame(
        {
            "code": ["N", "1", "2"] * 10,
            "sex": [1, 2, 1] * 10,
            "own": [True, False, True] * 10,
            "income": pd.array([1, None, 3] * 10, dtype="Int64"),
            "note": ["NA", None, "x;y"] * 10,
            "left": [1] * 30,
        }
    )
    table.assign(sex=table["sex"].astype(str)).to_parquet(tmp_path / "real.parquet")
    table.drop(columns="left").to_csv(tmp_path / "synthetic.csv", index=False, sep=";")
    found = read_pair(tmp_path / "real.parquet", tmp_path / "synthetic.csv")
    one, other, _ = found.codes
    np.testing.assert_array_equal(one, other)
    assert found.left_out == ("left",)
    assert found.numeric == ["income"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.csv", None, "there is no such file"),
        ("table.txt", "a", r"must be a \.parquet"),
        ("broken.parquet", "secret-value", "cannot be read as a Parquet file"),
        ("broken.csv", b"a,b\n\xff\xfe,secret-value", "line 2 is not UTF-8"),
        ("long.csv", "a,b\n1,2\n\n1,secret-value,3", "line 4 has more fields"),
    ],
)
def test_what_cannot_be_read_is_told_without_a_value(tmp_path, name, content, says):
    if content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=says) as caught:
        read_table(tmp_path / name)
    assert "secret-value" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_tables_without_enough_in_common_are_refused(tmp_path):
    one, other, short = (tmp_path / f"{name}.csv" for name in ("one", "other", "short"))
    one.write_text("a,b\n" + "1,2\n" * 30)
    other.write_text("a,c\n" + "1,2\n" * 30)
    short.write_text("a,b\n" + "1,2\n" * 3)
    with pytest.raises(InputError, match="fewer than two common columns"):
        read_pair(one, other)
    with pytest.raises(InputError, match=r"short\.csv: has fewer than 20 records"):
        read_pair(one, short)
