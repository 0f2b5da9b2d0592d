"""Published files are read by pandas as the types that were meant."""

import numpy as np
import pandas as pd

from tasks.parquet import write_table


def test_whole_numbers_with_nulls_stay_whole_numbers(tmp_path):
    columns = {
        "children": np.ma.masked_array([1, 2, 3], mask=[False, True, False]),
        "age": np.array([4, 5, 6]),
        "region": np.ma.masked_array(np.array(["a", "b", "a"]), mask=[True, False, False]),
        "owner": np.ma.masked_array([True, False, True], mask=[False, False, True]),
    }
    about = {"dprelease.dataset": "d"}
    file = write_table(tmp_path, "t/x.parquet", columns, dict.fromkeys(columns, "text"), about)
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
