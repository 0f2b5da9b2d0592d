"""Wide records are those of an oracle; tables that differ in one unit differ in one of them."""

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.errors import DataError
from dpcore.releases.models.design import SurveyDesign
from schemas.plan.linked import SIZE, Linked
from schemas.survey.columns import IdentifierColumn
from schemas.survey.unit import UnitColumn, Weights
from tasks.survey.engines.postgresql import open_postgresql
from tasks.survey.ingest import ingest
from tasks.survey.linked import wide_records
from tasks.survey.reading import held_open, open_survey
from tasks.survey.tally import Counting, tallies
from tests.tasks.survey.tables import column, in_postgresql

COLUMNS = {
    "region": column("categorical", categories=["N", "S"]),
    "age": column("integer", bounds=(0, 9)),
    "owns": column("categorical", categories=[True, False], nullable=True),
    "pay": column("continuous", bounds=(0.0, 1.0), grid=4),
}
READ = {**COLUMNS, "home": IdentifierColumn()}
TWO = UnitColumn(column="home", max_rows=2)
OLDEST = Linked(order=["-age"], shared=["region"])
HOMES = Adjacency("add-remove", unit="home")
Record = tuple[object, ...]


def survey(folder: Path, records: list[Record]) -> Path:
    """The survey file of (home, region, age, owns, pay) records."""
    frame = pd.DataFrame(records, columns=["home", *COLUMNS]).astype({"owns": "boolean"})
    frame.to_parquet(folder / "t.parquet")
    return ingest(str(folder / "t.parquet"), READ, 1, folder / "work", HOMES)


def wide(folder: Path, records: list[Record], unit=TWO, linked=OLDEST) -> Counter:
    return wide_of(survey(folder, records), unit, linked)


def wide_of(database: Path, unit=TWO, linked=OLDEST) -> Counter:
    with open_survey(database) as (table, *_):
        found = wide_records(table, unit, linked).to_pyarrow().to_pylist()
    return Counter(tuple(record.items()) for record in found)


def oracle(records: list[Record], unit: UnitColumn, linked: Linked) -> Counter:
    """The rule of ``tasks.survey.linked`` in Python."""
    names, found = list(COLUMNS), Counter()
    rest = [(name, False) for name in names if name not in dict(linked.sorted_by)]
    for home in {str(record[0]) for record in records}:
        own = [dict(zip(names, r[1:], strict=True)) for r in records if str(r[0]) == home]
        for key in reversed([*linked.sorted_by, *rest]):  # sorting is stable
            own.sort(key=lambda r, n=key[0]: (r[n] is not None, r[n] or 0), reverse=key[1])
        own = own[: unit.max_rows]
        record = {n: own[0][n] for n in names if n in linked.shared} | {SIZE: len(own)}
        for i in range(unit.max_rows):
            for name in (n for n in names if n not in linked.shared):
                record[f"{name}.{i + 1}"] = own[i][name] if i < len(own) else None
        found[tuple(record.items())] += 1
    return found


def made_up(n: int = 300) -> list[Record]:
    """Households of none to a dozen, with members who tie in age, or are alike."""
    random = np.random.default_rng(3)
    return [
        (
            f"h{random.integers(60)}",
            str(random.choice(["N", "S"])),
            int(random.integers(4)),
            [True, False, None][random.integers(3)],
            float(random.choice([0.0, 0.5, 1.0])),
        )
        for _ in range(n)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "linked"),
    [
        (2, OLDEST),
        (3, Linked(order=["age", "-pay"])),
        (20, Linked(order=["-owns"], shared=["region", "pay"])),
    ],
)
def test_wide_records_are_those_of_the_oracle_in_any_order(most, linked, tmp_path):
    records, unit = made_up(), UnitColumn(column="home", max_rows=most)
    expected = oracle(records, unit, linked)
    found = wide(tmp_path, records, unit, linked)
    assert found == wide(tmp_path, records[::-1], unit, linked) == expected
    assert found.total() == len({record[0] for record in records})


PEOPLE: list[Record] = [("N", 3, True, 0.5), ("S", 3, None, 0.5), ("N", 9, False, 1.0)]
OTHERS: list[Record] = [("x", *PEOPLE[0]), ("y", *PEOPLE[1]), ("y", *PEOPLE[1]), ("y", *PEOPLE[2])]
UNITS = [
    list(people)
    for size in range(4)
    for people in itertools.combinations_with_replacement(PEOPLE, size)
]
"""Every household of up to three of three kinds of people: ties, people alike, more than are used."""


@pytest.mark.slow
def test_tables_that_differ_in_one_unit_differ_in_one_wide_record_and_in_their_tallies(tmp_path):
    columns = OLDEST.wide(COLUMNS, TWO)
    domains = [
        Domain(tuple(columns[n].axis(n) for n in names))
        for names in ((SIZE, "age.1", "age.2"), ("region", "owns.2", "pay.1"))
    ]
    tables, tallied = [], []
    for i, people in enumerate(UNITS):
        database = survey(tmp_path, OTHERS + [("uv"[i % 2], *person) for person in people])
        tables.append(wide_of(database))
        found = tallies(database, domains, Counting(unit=TWO, linked=OLDEST))
        tallied.append([tally.dense() for tally in found])
    without = tables[0]
    for i, one in enumerate(tables):
        assert (without - one).total() == 0
        assert (one - without).total() == (i > 0)
        for other in tables[1:]:
            assert (one - other).total() <= 1
            assert (other - one).total() <= 1
    for vectors in map(np.stack, zip(*tallied, strict=True)):
        assert np.abs(vectors[1:] - vectors[0]).sum(axis=1).tolist() == [1] * (len(UNITS) - 1)
        assert np.abs(vectors[:, None] - vectors[None]).sum(axis=-1).max() == 2


@pytest.mark.slow
def test_the_tally_of_a_models_units_moves_by_one_unit(tmp_path):
    """Weights, strata and nulls included; of more than two records, two are kept."""
    design = SurveyDesign(members=2, steps=3, usual=1.5, strata=COLUMNS["region"].axis("region"))
    domain = design.domain([COLUMNS[name].axis(name) for name in ("age", "owns")])
    weights = Weights.model_validate({"column": "w", "largest": 3, "step": 1, "total": 300})
    read = {**READ, "w": weights.read}

    def tallied(people):
        records = OTHERS + [("u", *person) for person in people]
        frame = pd.DataFrame(records, columns=["home", *COLUMNS]).astype({"owns": "boolean"})
        frame["w"] = 2.0 * frame["age"] - 5  # 1, and 13, which is cut
        frame.to_parquet(tmp_path / "t.parquet")
        database = ingest(str(tmp_path / "t.parquet"), read, 1, tmp_path / "work", HOMES)
        how = {"unit": TWO, "weights": weights, "columns": read, "design": design}
        (tally,) = tallies(database, [domain], Counting(rows=300, adjacency=HOMES, **how))
        units = map(tuple, domain.unpack(tally.cells).tolist())
        return Counter(dict(zip(units, tally.counts.tolist(), strict=True)))

    tables = [tallied(people) for people in UNITS]
    assert tables[0].total() == 2
    assert all((one - tables[0]).total() == 1 for one in tables[1:])
    both = tables[UNITS.index([PEOPLE[0], PEOPLE[2]])] - tables[0]
    ((unit, _),) = both.items()
    ages, owns, steps, stratum = unit[:2], unit[2:4], unit[4:6], unit[6]
    # True is the first category of who owns.
    assert sorted(zip(ages, owns, steps, strict=True)) == [(3, 0, 1), (9, 1, 3)]
    assert stratum == 0


def test_values_of_the_wrong_type_stop_the_tally_of_any_column(tmp_path):
    frame = pd.DataFrame(
        {"home": ["a"], "region": ["N"], "age": ["old"], "owns": [True], "pay": [0.5]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    database = ingest(str(tmp_path / "t.parquet"), READ, 1, tmp_path / "work", HOMES)
    domain = Domain((OLDEST.wide(COLUMNS, TWO)[SIZE].axis(SIZE),))
    with pytest.raises(DataError, match="does not fit the plan"):
        tallies(database, [domain], Counting(unit=TWO, linked=OLDEST))


@pytest.mark.slow
def test_postgresql_makes_the_records_that_duckdb_does(tmp_path, monkeypatch):
    records = made_up()
    frame = pd.DataFrame(records, columns=["home", *COLUMNS]).astype({"owns": "boolean"})
    source = in_postgresql(frame, tmp_path, monkeypatch)
    session = open_postgresql(source, READ, 1, HOMES)
    with held_open(session):
        there = wide_records(session.table, TWO, OLDEST).to_pyarrow().to_pylist()
    assert Counter(tuple(record.items()) for record in there) == oracle(records, TWO, OLDEST)
