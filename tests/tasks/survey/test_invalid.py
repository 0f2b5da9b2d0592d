"""A plan with a rule for values that are not valid tallies every table, and neighbours stay near."""

import csv
from pathlib import Path

import numpy as np
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.errors import DataError
from schemas.plan import Plan
from schemas.survey.columns import IdentifierColumn, made_total
from schemas.survey.unit import WEIGHT, UnitColumn, Weights
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest
from tasks.survey.steps import ingest_survey, validate_survey
from tasks.survey.tally import Counting, tallies
from tests.tasks.survey.tables import column

COLUMNS = {
    "sex": column("categorical", categories=["F", "M"]),
    "rank": column("categorical", categories=[1, 2, 3], nullable=True),
    "age": column("integer", bounds=(18, 25)),
    "pay": column("continuous", bounds=(0.0, 10.0), grid=4, nullable=True),
}
EXTRA = {"home": IdentifierColumn(), "factor": WEIGHT}
NAMES = [*COLUMNS, *EXTRA]
GOOD = ["F", "2", "20", "7.5", "h1", "2"]
WORDS = [
    *GOOD,
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "-1e300",
    "1e400",
    "-7",
    "24",
    "3.7",
    "x",
    "99",
    "0x1",
]
STEPS = Weights(column="factor", largest="5", step="1/2", total=100)
TWO = UnitColumn(column="home", max_rows=2)
ADDED = Adjacency("add-remove")
RULES = ("clamp", "own-cell", "drop")


def written(records: list[list[str]], folder: Path) -> str:
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_MINIMAL).writerows([NAMES, *records])
    return str(folder / "t.csv")


def counted(records, invalid, folder, unit=None, weights=None, adjacency=ADDED):
    """The dense tally over all columns and over one of them, by a reading of its own."""
    columns = {name: made_total(of, invalid) for name, of in COLUMNS.items()}
    domains = [Domain(tuple(of.axis(n) for n, of in columns.items()))]
    domains.append(domains[0].select(("age",)))
    read = {**columns, **EXTRA}
    survey = ingest(written(records, folder), read, 5, folder / "work", adjacency)
    how = Counting(5, adjacency, unit, weights, read, invalid)
    return [found.dense() for found in tallies(survey, domains, how)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("invalid", "relation", "unit", "weights"),
    [
        pytest.param("clamp", "replace-one", None, None, id="another row"),
        pytest.param("own-cell", "add-remove", TWO, None, id="a home more"),
        pytest.param("drop", "add-remove", None, STEPS, id="a weight more"),
        pytest.param("clamp", "replace-one", TWO, STEPS, id="another home of weights"),
    ],
)
def test_broken_tables_are_tallied_and_neighbours_stay_near(
    invalid, relation, unit, weights, tmp_path
):
    random = np.random.default_rng(len(invalid))

    def broken(home: str) -> list[str]:
        record = [str(random.choice(WORDS)) if random.random() < 0.5 else good for good in GOOD]
        return [*record[:4], home, record[5]]

    most = (unit.max_rows if unit else 1) * (weights.most_steps if weights else 1)
    adjacency = Adjacency(relation, most, bool(weights), unit.column if unit else "row")
    if invalid == "drop" and adjacency.public_rows:
        adjacency = ADDED
    claim = adjacency.sensitivity(moved=2, present=1)
    for _ in range(3):
        shared = [broken(str(random.choice(["a", "b", "", " "]))) for _ in range(4)]
        gone, come = ([broken("u") for _ in range(4 if unit else 1)] for _ in range(2))
        if adjacency.relation == "add-remove":
            gone = []
        options = (invalid, tmp_path, unit, weights)
        if adjacency.public_rows:  # five records, as the plan says
            options = (*options, adjacency)
        near, far = (counted(shared + own, *options) for own in (gone, come))
        for one, other in zip(near, far, strict=True):
            assert np.abs(one - other).sum() <= claim


@pytest.mark.parametrize(
    ("invalid", "cells"),
    [
        # The null cell of rank is 3 and that of pay 4; sex and age have one with own-cell only.
        ("clamp", [(0, 1, 2, 3), (0, 3, 0, 4), (1, 3, 7, 3)]),
        ("own-cell", [(0, 1, 2, 3), (2, 3, 8, 4), (1, 3, 8, 4)]),
        ("drop", [(0, 1, 2, 3)]),
    ],
)
def test_each_rule_puts_values_that_are_not_valid_where_it_says(invalid, cells, tmp_path):
    records = [GOOD, ["?", "9", "", "nan", "h", "1"], ["M", "x", "400", "11", "h", "1"]]
    columns = {name: made_total(of, invalid) for name, of in COLUMNS.items()}
    domain = Domain(tuple(of.axis(n) for n, of in columns.items()))
    found, _ = counted(records, invalid, tmp_path)
    assert {tuple(c) for c in domain.unpack(np.flatnonzero(found)).tolist()} == set(cells)
    assert found.sum() == len(cells)


def plan_of(document: dict, source: str, **changes: object) -> Plan:
    people = {
        "name": "people",
        "kind": "histogram",
        "columns": ["sex"],
        "mechanism": "discrete-laplace",
    }
    columns = {name: of.model_dump(mode="json") for name, of in COLUMNS.items()}
    budget = {"granted": {"alpha": "1"}, "requested": {"alpha": "1"}}
    facts = {"source": source, "rows": 2, "columns": columns, "budget": budget, "synthesis": []}
    return Plan.model_validate(document | facts | {"releases": [people]} | changes)


@pytest.mark.slow
def test_a_plan_refuses_broken_tables_unless_it_has_a_rule(plan_document, tmp_path):
    source = written([GOOD, ["?", "9", "", "nan", "", "-1"]], tmp_path)
    refusing = plan_of(plan_document, source)
    with pytest.raises(DataError, match="not as the plan declares"):
        validate_survey.fn(refusing, ingest_survey.fn(refusing, tmp_path / "work"))
    total = plan_of(plan_document, source, invalid="own-cell")
    survey = ingest_survey.fn(total, tmp_path / "work")
    validate_survey.fn(total, survey)
    assert tally_releases(total, ["people"], survey)["people"].dense().tolist() == [1, 0, 1]
    assert all(of.nullable for of in total.columns.values())


def test_records_are_dropped_only_where_their_number_is_private(plan_document):
    with pytest.raises(ValueError, match="invalid: drop makes the number of records private"):
        plan_of(plan_document, "t.csv", invalid="drop")
    plan_of(plan_document, "t.csv", invalid="drop", neighbours="add-remove")


@pytest.mark.parametrize(
    ("invalid", "codes"),
    [("clamp", [0, 0, 0, 0, 2]), ("own-cell", [0, 3, 3, 3, 3]), ("drop", [0, 3])],
)
def test_a_number_that_is_no_level_is_not_valid(invalid, codes, tmp_path):
    """Levels 0, 5 and 9, and null: 7, -1 and 11 are none.  Clamping moves the last two."""
    of = made_total(column("integer", levels=[0, 5, 9], nullable=invalid != "clamp"), invalid)
    path = tmp_path / "t.csv"
    path.write_text("x,y\n0,a\n7,a\n-1,a\n11,a\n,a\n")
    read = {"x": of, "y": column("categorical", categories=["a"])}
    survey = ingest(str(path), read, 5, tmp_path / "work", ADDED)
    domain = Domain((of.axis("x"),))
    (found,) = tallies(
        survey, [domain], Counting(rows=5, adjacency=ADDED, columns=read, invalid=invalid)
    )
    assert found.dense().tolist() == np.bincount(codes, minlength=domain.size).tolist()
