"""Heaping: numbers are rounded as often as in the survey, wherever a plan measures it."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import yaml

from dpcore.domain.axes import Bins, Categories
from dpcore.domain.cell_values import CellNumbers, spacing
from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan
from tasks.audit.rehearsal import rehearse_shortly
from tasks.bundle.records import synthetic_records
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest
from tasks.survey.validate import validate
from tests.tasks.survey.tables import write
from tests.tasks.survey.test_ingest import contents

ROWS = 4000
PLAN = f"""
dprelease: 1
dataset: rounded
source: t.parquet
rows: {ROWS}
privacy_unit: row
neighbours: replace-one
columns:
  hours: {{type: integer, bounds: [0, 99], nullable: true}}
  hours_round: {{type: integer, nullable: true, from: {{column: hours, multiples_of: [10, 5]}}}}
  pay: {{type: continuous, bounds: [0, 9999], step: 0.5, point_masses: [0]}}
  pay_round: {{type: integer, from: {{column: pay, multiples_of: [1000, 100]}}}}
budget: {{granted: {{alpha: 1000, beta: "1e-9"}}, requested: {{alpha: 1000, beta: "1e-9"}}}}
releases:
  - name: everyone
    kind: microdata-margins
    columns: [hours, hours_round, pay, pay_round]
    bins: {{hours: [0, 1, 7, 20, 42, 44, 100], pay: [0, 50, 950, 1050, 5000, 9999]}}
synthesis: [{{name: people, from: everyone, rows: 20000}}]
publication: {{title: Rounded}}
"""


def planned(**columns: Any) -> Plan:
    document = yaml.safe_load(PLAN)
    for name, change in columns.items():
        document["columns"][name] |= change
    return Plan.model_validate(document)


def roundness(values: np.ndarray, multiples: list[int]) -> np.ndarray:
    """By the words of ``Multiples``."""
    return np.select([values % m == 0 for m in multiples], multiples, 0)


@pytest.mark.parametrize("step", [None, 0.25, 1, 5])
def test_a_number_of_a_roundness_is_one_of_a_list(step):
    random = np.random.default_rng(1)
    levels = Categories("round", (0, 10, 50, 100), ordered=True)
    edges = (0.0, 3.0, 10.0, 10.0, 47.5, 50.0, 95.0, 105.0, 300.0)
    axis = Bins("x", edges, step=step and Fraction(step))
    codes = random.integers(axis.cells, size=5000)
    classes = random.integers(4, size=5000)
    inside = CellNumbers.of(axis, codes)
    found = inside.heaped(random.random(5000), *spacing(levels, classes))
    every = np.array(levels.categories)[classes]
    some = ~np.isnan(found)
    assert np.all((inside.first <= found)[some] & (found <= inside.last)[some])
    np.testing.assert_array_equal(roundness(found, [100, 50, 10])[some], every[some])
    for code, level in set(zip(codes[~some].tolist(), every[~some].tolist(), strict=True)):
        numbers = np.arange(0, 300.25, step or 0.25)
        cell = CellNumbers.of(axis, np.array([code]))
        numbers = numbers[(cell.first <= numbers) & (numbers <= cell.last)]
        assert not np.any(roundness(numbers, [100, 50, 10]) == level)


def test_the_engine_computes_the_multiples_of_each_value(tmp_path):
    plan = planned()
    source = write(
        tmp_path / "t.parquet",
        "SELECT * FROM (VALUES (40, 0.0), (35, 1100.0), (99, 2000.0), (0, 50.5), (NULL, 9999.0))"
        " AS t(hours, pay)",
    )
    database = ingest(source, plan.read_columns, 5, tmp_path / "work")
    validate(database, plan.read_columns)
    assert sorted(contents(database), key=str) == sorted(
        [
            (40, 10, 0.0, 1000),
            (35, 5, 1100.0, 100),
            (99, 0, 2000.0, 1000),
            (0, 10, 50.5, 0),
            (None, None, 9999.0, 0),
        ],
        key=str,
    )


def test_the_audit_s_made_up_survey_is_tallied_with_them():
    rehearse_shortly(planned())


def survey(path: Path) -> str:
    """Hours that most people round, and pay that fewer do."""
    return write(
        path,
        "SELECT CASE WHEN a < .1 THEN NULL WHEN a < .6 THEN 10 * CAST(floor(9.9 * b) AS BIGINT)"
        " WHEN a < .8 THEN 5 + 10 * CAST(floor(9.4 * b) AS BIGINT) ELSE CAST(floor(100 * b) AS BIGINT)"
        " END AS hours, CASE WHEN c < .3 THEN 0 WHEN c < .6 THEN 1000 * floor(9.9 * d)"
        " ELSE floor(19998 * d) / 2 END AS pay FROM (SELECT random() AS a, random() AS b, random() AS c,"
        f" random() AS d FROM range({ROWS}))",
    )


def test_synthetic_numbers_are_rounded_as_those_of_the_survey(tmp_path):
    plan = planned()
    source = survey(tmp_path / "t.parquet")
    database = ingest(source, plan.read_columns, ROWS, tmp_path / "work")
    (release,) = plan.built.values()
    tally = tally_releases(plan, [release.name], database)[release.name]
    noisy = perturb(release.statistic(tally), release.mechanism, release.share, SeededSource(1))
    made = synthetic_records(plan, plan.synthesis[0], lambda _: noisy).columns
    exact = duckdb.sql(f"SELECT hours, pay FROM '{source}'").fetchnumpy()
    for name, multiples in (("hours", [10, 5]), ("pay", [1000, 100])):
        values, real = np.ma.compressed(made[name]), np.ma.compressed(exact[name])
        own = np.ma.compressed(made[f"{name}_round"])
        np.testing.assert_array_equal(roundness(values, multiples), own)
        for level in (0, *multiples):
            share = np.mean(roundness(real, multiples) == level)
            assert np.mean(own == level) == pytest.approx(share, abs=0.02)
    assert np.array_equal(
        np.ma.getmaskarray(made["hours"]), np.ma.getmaskarray(made["hours_round"])
    )


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (
            "hours_round",
            {"from": {"column": "ours", "multiples_of": [5]}},
            "'ours' is not a column of",
        ),
        ("hours_round", {"from": {"column": "hours", "multiples_of": [5, 10]}}, "must descend"),
        ("hours_round", {"nullable": False}, "hours may be null, so hours_round must be nullable"),
        ("hours_round", {"levels": [0, 5]}, "levels: follow from `from`, \\[0, 5, 10\\]"),
        ("hours", {"step": 5}, "5 is not a larger multiple of hours's step 5"),
        (
            "pay",
            {"bounds": [1, 999], "point_masses": []},
            "no multiple of 1000 is within the bounds",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(name, change, said):
    with pytest.raises(ValueError, match=said):
        planned(**{name: change})
