"""A plan from Python: from the names and types of a table in memory, or from a file."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

import dprelease
from tests.bare import leave_out_audits

QUESTIONS = """\
column,values,lower,upper,step
sex,F; M,,,
age,,18,90,
pay,,0,5000,0.01
"""

FILLED = {
    "rows": 60,
    "budget.granted.alpha": "2",
    "budget.requested.alpha": "1",
    "publication.title": "Pay",
}


def frame(rows: int = 60, pay: float = 123.45) -> pd.DataFrame:
    sex = pd.Categorical(["F", "M"] * (rows // 2))
    return pd.DataFrame({"sex": sex, "age": [18 + i % 60 for i in range(rows)], "pay": pay})


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.csv"
    path.write_text(QUESTIONS)
    return path


@pytest.mark.slow
def test_a_plan_of_a_frame_is_filled_in_and_released(tmp_path, questions, monkeypatch):
    leave_out_audits(monkeypatch.setattr)
    plan = dprelease.plan(frame(), questions, tables=["sex"], means=["pay by sex"])
    with pytest.raises(dprelease.PlanError, match="rows: not filled in"):
        dprelease.load_plan(plan.write(tmp_path / "plan.yaml"))
    assert (tmp_path / "plan.yaml").read_text() == str(plan)
    bundle = dprelease.release(
        plan.filled(FILLED),
        frame(),
        ledger=tmp_path / "ledger.sqlite",
        out=tmp_path,
        progress=False,
    )
    assert len(bundle.table("mean-pay-by-sex")) == 2


@pytest.mark.slow
def test_no_value_of_a_frame_is_in_its_plan(questions):
    class Unread(pd.DataFrame):
        def __getitem__(self, key):
            raise AssertionError("a value was read")

        iloc = loc = values = property(__getitem__)

    some = dprelease.plan(Unread(frame()), questions, records=True)
    other = dprelease.plan(frame(20, 77.5), questions, records=True)
    assert str(some) == str(other)
    assert "123.45" not in str(some)


def test_types_of_frames_are_those_of_tables():
    made = pd.DataFrame(
        {
            "flag": np.ones(2, dtype=bool),
            "count": [1, 2],
            "size": [0.5, 1.5],
            "name": pd.Series(["a", "b"], dtype="string"),
            "kind": pd.Categorical(["a", "b"]),
            "at": pd.to_datetime(["2024-01-02", "2024-01-03"]),
        }
    )
    for table in (made, pa.Table.from_pandas(made)):
        columns = yaml.safe_load(str(dprelease.plan(table)))["columns"]
        types = {name: column["type"] for name, column in columns.items()}
        assert types == {
            "flag": "categorical",
            "count": "integer",
            "size": "continuous",
            "name": "categorical",
            "kind": "categorical",
            **{f"at_{part}": "integer" for part in ("year", "month", "weekday", "hour")},
        }


def test_wishes_from_python_are_refused_like_those_of_the_command(questions):
    with pytest.raises(dprelease.InputError, match="did you mean 'pay'"):
        dprelease.plan(frame(), questions, means=["pai"])
    with pytest.raises(dprelease.InputError, match="table: is a list"):
        dprelease.plan([1, 2], questions)
