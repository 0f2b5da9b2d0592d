"""Records come out as NIST's own files and data dictionary have them."""

import json
import re

import pandas as pd
import pytest

from dpcore.errors import InputError
from tasks.evaluate import write_sdnist

DICTIONARY = {
    "PUMA": {"values": {"25-00503": "Waltham", "25-00703": "Salem"}},
    "AGEP": {"values": {"min": 0, "max": 99}},
    "NOC": {"values": {"N": "not applicable", "0": "none", "min": 1, "max": 19}},
    "PINCP": {"values": {"N": "under 15", "min": -9000, "max": 1341000}},
    "INDP": {"description": "Industry codes", "link": "https://example.org"},
    "HOUSING_TYPE": {"values": {"1": "unit", "2": "institution"}},
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "data_dictionary.json").write_text(json.dumps(DICTIONARY))
    return tmp_path / "table.parquet", tmp_path / "data_dictionary.json", tmp_path / "out.csv"


def stand_in() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "PUMA": ["25-00503", "25-00703", "25-00503"],
            "AGEP": [0, 99, 40],
            "NOC": pd.array([None, 0, 3], dtype="Int64"),
            "PINCP": pd.array([None, -9000, 12500], dtype="Int64"),
            "INDP": ["N", "170", "8680"],
            "HOUSING_TYPE": [1, 2, 1],
            "own": [1, 2, 3],
        }
    )


def test_nulls_are_the_letter_and_codes_are_whole(files):
    stand_in().to_parquet(files[0])
    write_sdnist(*files)
    assert files[2].read_bytes().decode() == (
        "PUMA,AGEP,NOC,PINCP,INDP,HOUSING_TYPE\r\n"
        "25-00503,0,N,N,N,1\r\n"
        "25-00703,99,0,-9000.0,170,2\r\n"
        "25-00503,40,3,12500.0,8680,1\r\n"
    )


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("PUMA", ["25-00503", "01-01301", "x"], "PUMA: 2 of 3 values are not in the data dict"),
        ("AGEP", [0, 100, 5], "AGEP: 1 of 3"),
        ("INDP", ["N", "17x", "12"], "INDP: 1 of 3"),
    ],
)
def test_what_the_dictionary_does_not_have_is_refused_and_nothing_written(
    files, column, values, says
):
    stand_in().assign(**{column: values}).to_parquet(files[0])
    with pytest.raises(InputError, match=re.escape(says)):
        write_sdnist(*files)
    assert not files[2].exists()
