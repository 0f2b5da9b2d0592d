"""What holds of all real records is found, and the synthetic ones that contradict it are counted."""

import numpy as np
import pandas as pd
import pytest

from dpcore.errors import InputError
from tasks.evaluate.contradictions import determined_columns, judged_formula
from tasks.evaluate.tables import TablePair

ROWS = 2000


def paired(real: pd.DataFrame, synthetic: pd.DataFrame) -> TablePair:
    return TablePair(real, synthetic, (), 20)


def places(rows: int = ROWS) -> pd.DataFrame:
    """District determines region; the other columns determine nothing."""
    random = np.random.default_rng(1)
    district = random.integers(0, 40, rows)
    return pd.DataFrame(
        {
            "district": [f"d{i}" for i in district],
            "region": [f"r{i % 4}" for i in district],
            "sex": random.choice(["F", "M", None], rows),
            "person": np.arange(rows, dtype=np.float64),
            "country": "here",
        }
    )


def test_a_determined_column_is_found_and_its_contradictions_counted():
    real = places()
    synthetic = real.copy()
    synthetic.loc[: ROWS // 4 - 1, "region"] = "r0"
    wrong = (synthetic["region"] != real["region"]).mean()
    synthetic.loc[ROWS - 100 :, "district"] = "unheard of"
    judged = synthetic["district"] != "unheard of"
    (found,) = determined_columns(paired(real, synthetic))
    assert (found.by, found.column) == ("district", "region")
    assert found.contradicted == pytest.approx(wrong / judged.mean())
    assert found.judged == judged.mean()
    assert found.if_independent == pytest.approx(0.75, abs=0.02)
    (none,) = determined_columns(paired(real, real))
    assert none.contradicted == 0


def bodies(rows: int = ROWS) -> pd.DataFrame:
    random = np.random.default_rng(2)
    weight, height = random.integers(45, 120, rows), random.integers(150, 200, rows)
    wages, rent = random.integers(0, 900, (2, rows)) / 10
    frame = pd.DataFrame(
        {"Weight": weight, "Height": height, "wages": wages, "rent paid": rent}, dtype=np.float64
    )
    frame["BMI"] = (frame["Weight"] / (frame["Height"] / 100) ** 2).round(1)
    frame["income"] = (frame["wages"] + frame["rent paid"]).round(1)
    return frame


def test_a_stated_formula_is_judged_within_its_last_decimal():
    real, synthetic = bodies(), bodies()
    synthetic.loc[: ROWS // 2 - 1, "BMI"] += 0.3
    synthetic.loc[ROWS - 1, "Weight"] = np.nan
    stated = "BMI = Weight / (Height / 100) ** 2"
    judged = judged_formula(paired(real, synthetic), stated)
    assert (judged.formula, judged.broken_in_real) == (stated, 0.0)
    assert judged.broken_in_synthetic == pytest.approx((ROWS // 2) / (ROWS - 1))
    income = judged_formula(paired(real, synthetic), "income=wages + `rent paid`")
    assert income.broken_in_synthetic == 0


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("BMI", "is no condition, such as end >= start"),
        ("BMI = shoe * 2", "the right side, at character 1: there is no column 'shoe'"),
        ("BMI = @pd", "is no formula"),
    ],
)
def test_what_is_no_formula_is_told(formula, says):
    with pytest.raises(InputError, match=says) as caught:
        judged_formula(paired(bodies(), bodies()), formula)
    assert formula in str(caught.value)
