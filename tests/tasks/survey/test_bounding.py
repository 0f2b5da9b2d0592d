"""At most so many records of each unit are kept, and no unit moves a tally by more than they can."""

import hashlib
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.domain.series import square_root
from dpcore.errors import DataError
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.series import SeriesRun
from schemas.plan.series import Periods
from schemas.survey.columns import IdentifierColumn
from schemas.survey.unit import WEIGHT, UnitColumn, Weights
from tasks.survey.bounding import keep_records
from tasks.survey.engines.postgresql import open_postgresql
from tasks.survey.ingest import ingest
from tasks.survey.reading import held_open, open_survey
from tasks.survey.tally import Counting, tallies
from tasks.survey.validate import validate
from tests.tasks.survey.tables import column, in_postgresql

COLUMNS = {
    "sex": column("categorical", categories=["F", "M"]),
    "age": column("integer", bounds=(0, 9), nullable=True),
    "pay": column("continuous", bounds=(0.0, 1.0), grid=16),
}
READ = {**COLUMNS, "home": IdentifierColumn(), "weight": WEIGHT}
HOMES = Adjacency("add-remove", 2, unit="home")
TWO = UnitColumn(column="home", max_rows=2)
HALVES = Weights(column="weight", largest="3/2", step="1/2", total=10)
BY_SEX = Domain((COLUMNS["sex"].axis("sex"),))
EVERYTHING = Domain(tuple(of.axis(name) for name, of in COLUMNS.items()))
PEOPLE = [("F", 3, 0.5, 2.0), ("M", None, 0.25, 0.2), ("M", 9, 1.0, 7.0)]


def survey(folder: Path, records: list[tuple]) -> Path:
    """The survey file of (home, sex, age, pay, weight) records."""
    frame = pd.DataFrame(records, columns=["home", *COLUMNS, "weight"]).astype({"age": "Int64"})
    frame.to_parquet(folder / "t.parquet")
    return ingest(str(folder / "t.parquet"), READ, 1, folder / "work", HOMES)


def kept(folder: Path, records: list[tuple], unit: UnitColumn = TWO) -> Counter:
    with open_survey(survey(folder, records)) as (table, *_):
        found = keep_records(table, unit).to_pyarrow().select(["home", *COLUMNS, "weight"])
    return Counter(zip(*found.to_pydict().values(), strict=True))


def oracle(records: list[tuple], unit: UnitColumn) -> Counter:
    """The rule of ``tasks.survey.bounding`` in Python."""

    def word(value):
        if value is None:
            return ""
        return str(int(value * 1024 // 1)) if isinstance(value, float) else str(value)

    def order(record):
        home, *values = record
        text = "|".join([str(home), *map(word, values)])
        return hashlib.md5(text.encode()).hexdigest(), [(v is not None, v) for v in values]

    found: Counter = Counter()
    for home in {record[0] for record in records}:
        found.update(sorted((r for r in records if r[0] == home), key=order)[: unit.max_rows])
    return found


def made_up(n: int = 300) -> list[tuple]:
    random = np.random.default_rng(3)
    return [
        (
            f"h{random.integers(60)}",
            str(random.choice(["F", "M"])),
            None if random.random() < 0.2 else int(random.integers(10)),
            float(random.choice([0.0, 0.1, 1 / 3, 0.99999, 1.0])),
            float(random.uniform(0, 3)),
        )
        for _ in range(n)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 100])
def test_the_kept_records_are_those_of_the_oracle_in_any_order(most, tmp_path):
    records, unit = made_up(), UnitColumn(column="home", max_rows=most)
    expected = oracle(records, unit)
    assert kept(tmp_path, records, unit) == kept(tmp_path, records[::-1], unit) == expected
    sizes = Counter(record[0] for record in records)
    held = Counter(home for home, *_ in expected.elements())
    assert held == {home: min(size, most) for home, size in sizes.items()}


@pytest.mark.slow
def test_what_is_kept_of_a_unit_depends_on_no_other_unit(tmp_path):
    records = made_up(60)
    together = kept(tmp_path, records)
    for home in sorted({record[0] for record in records})[:10]:
        own = [record for record in records if record[0] == home]
        assert kept(tmp_path, own) == Counter({r: n for r, n in together.items() if r[0] == home})


def test_no_kind_of_record_is_preferred(tmp_path):
    """Of 400 units with a woman and a man, one is kept: each as often as the other."""
    records = [(f"h{i}", sex, 1, 0.5, 1.0) for i in range(400) for sex in "FM"]
    one = kept(tmp_path, records, UnitColumn(column="home", max_rows=1))
    women = sum(n for (_, sex, *_), n in one.items() if sex == "F")
    assert 140 < women < 260  # six standard deviations


@pytest.mark.parametrize("kind", [int, float, str])
def test_numbers_and_text_name_units_alike(kind, tmp_path):
    records = [(kind(i % 3), "F", 1, 0.5, 1.0) for i in range(9)]
    assert sum(kept(tmp_path, records).values()) == 6


def test_a_float_that_may_stand_for_several_whole_numbers_names_no_unit(tmp_path):
    with pytest.raises(DataError, match="column 'home', type: 2 rows"):
        validate(survey(tmp_path, [(2.0**53, *PEOPLE[0]), (float("inf"), *PEOPLE[1])]), READ)


def test_records_without_unit_or_weight_stop_the_release(tmp_path):
    unnamed = [(home, *PEOPLE[0]) for home in (None, "", "  ")]
    unweighed = [("a", "F", 1, 0.5, weight) for weight in (None, -0.1, float("inf"))]
    with pytest.raises(DataError) as caught:
        validate(survey(tmp_path, [("b", *PEOPLE[0]), *unnamed, *unweighed]), READ)
    for told in ("'home', null: 1 row ", "'home', empty: 2 rows", "'weight', null: 1 row "):
        assert told in str(caught.value)
    for told in ("'weight', bounds: 1 row ", "'weight', finite: 1 row "):
        assert told in str(caught.value)


def test_a_weight_is_rounded_to_steps_and_cut_at_zero_and_at_the_largest(tmp_path):
    steps = {0.0: 0, 0.2499: 0, 0.25: 1, 0.5: 1, 0.7499: 1, 0.75: 2, 1.5: 3, 1e300: 3}
    records = [("a", "F", age, 0.5, weight) for age, weight in enumerate(steps)]
    records.append(("a", "F", 7, 0.5, -7.0))  # takes nothing away from the others of its cell
    by_age = Domain((COLUMNS["age"].axis("age"),))
    (found,) = tallies(survey(tmp_path, records), [by_age], Counting(weights=HALVES))
    assert found.dense().tolist() == [*steps.values(), 0, 0, 0]
    assert found.cells.tolist() == [age for age, n in enumerate(steps.values()) if n]


def test_steps_add_up_over_the_kept_records_of_every_cell(tmp_path):
    records, steps = made_up(), np.zeros(2, dtype=int)
    for (_, sex, _, _, weight), n in oracle(records, TWO).items():
        steps["FM".index(sex)] += n * min(int(weight * 2 + 0.5), 3)
    (found,) = tallies(survey(tmp_path, records), [BY_SEX], Counting(unit=TWO, weights=HALVES))
    assert found.dense().tolist() == steps.tolist()


@pytest.mark.slow
def test_no_unit_moves_a_tally_by_more_than_its_records_can(tmp_path):
    """Every household of up to three people is taken away from, and replaced in, a small survey."""
    households = [
        list(people)
        for size in range(4)
        for people in itertools.combinations_with_replacement(PEOPLE, size)
    ]
    others = [("x", *PEOPLE[0]), ("y", *PEOPLE[1]), ("y", *PEOPLE[2]), ("y", *PEOPLE[2])]

    def tallied(household, home):
        database = survey(tmp_path, others + [(home, *person) for person in household])
        domains = [BY_SEX, EVERYTHING]
        found = tallies(database, domains, Counting(unit=TWO))
        found += tallies(database, domains, Counting(unit=TWO, weights=HALVES))
        return [tally.dense() for tally in found]

    tables = [tallied(household, "uv"[i % 2]) for i, household in enumerate(households)]
    for which, steps in enumerate((1, 1, HALVES.most_steps, HALVES.most_steps)):
        most = TWO.max_rows * steps
        vectors = np.stack([table[which] for table in tables])
        without = tables[0][which]
        assert np.abs(vectors - without).sum(axis=1).max() == most  # add-remove
        apart = np.abs(vectors[:, None] - vectors[None]).sum(axis=-1).max()
        assert apart == 2 * most  # replace-one


def code(record: tuple, name: str) -> int:
    """The number of a record's period, if this column is the period; null is the last one."""
    _, sex, age, *_ = record
    return "FM".index(sex) if name == "sex" else 10 if age is None else age


def in_first_periods(records: list[tuple], name: str, most: int) -> Counter:
    """The rule for a series in Python: records kept, by sex and age."""
    found: Counter = Counter()
    for home in {record[0] for record in records}:
        own = [record for record in records if record[0] == home]
        for period in sorted({code(record, name) for record in own})[:most]:
            # The number of the period is one more value of a record, in its hash as well.
            here = oracle([(*r, period) for r in own if code(r, name) == period], TWO)
            found.update((code(r, "sex"), code(r, "age")) for r in here.elements())
    return found


@pytest.mark.parametrize(("name", "most"), [("age", 1), ("age", 2), ("sex", 10)])
def test_a_series_uses_the_first_periods_of_each_unit(most, name, tmp_path):
    records, domain = made_up(), Domain(EVERYTHING.axes[:2])
    periods = Periods(COLUMNS[name].axis(name), most)
    (found,) = tallies(survey(tmp_path, records), [domain], Counting(unit=TWO, periods=periods))
    cells = map(tuple, domain.unpack(np.repeat(found.cells, found.counts)).tolist())
    assert Counter(cells) == in_first_periods(records, name, most)


@pytest.mark.slow
@pytest.mark.parametrize(("max_rows", "most"), [(1, 2), (2, 1)])
def test_no_unit_moves_all_runs_of_a_series_by_more_than_they_claim(max_rows, most, tmp_path):
    """Every household of one or three people in three periods, added to a small survey."""
    week = column("integer", bounds=(0, 2)).axis("age")
    domain, homes = Domain((week, BY_SEX.axes[0])), UnitColumn(column="home", max_rows=max_rows)
    one_period = Adjacency("add-remove", max_rows, unit="home")
    in_run = Adjacency("add-remove", max_rows * most, unit="home")
    tables, factor = Histogram("h", BY_SEX, 9, Budget.of("1")), square_root(3)
    runs = [
        SeriesRun("s", domain, 9, Budget.of("1"), tables, factor, run, adjacency=in_run)
        for run in (1, 2, 3)
    ]

    def statistics(household):
        records = [("x", "F", 1, 0.5, 1.0), *(("u", *p, 0.5, 1.0) for p in household)]
        database = survey(tmp_path, records)
        (found,) = tallies(database, [domain], Counting(unit=homes, periods=Periods(week, most)))
        return np.concatenate([run.statistic(found)._statistic.values for run in runs])

    people = [("F", 0), ("F", 1), ("F", 2), ("M", 1)]
    households = [
        household
        for size in (1, 3)
        for household in itertools.combinations_with_replacement(people, size)
    ]
    moved = np.stack([statistics(household) for household in households]) - statistics(())
    assert (moved**2).sum(axis=1).max() == factor.l2_sensitivity_squared(3, most, one_period)
    assert np.abs(moved).sum(axis=1).max() == factor.l1_sensitivity(3, most, one_period)
    for run, part in zip(runs, np.split(moved, 3, axis=1), strict=True):
        assert np.abs(part).sum(axis=1).max() <= run.mechanism.event.l1_sensitivity


@pytest.mark.slow
def test_later_periods_change_nothing_in_earlier_ones(tmp_path):
    records = made_up(600)
    periods = Periods(COLUMNS["age"].axis("age"), 2)
    by_age = Domain((periods.axis, COLUMNS["sex"].axis("sex")))
    past: list[int] = []
    for now in range(10):
        table = [record for record in records if record[2] is not None and record[2] <= now]
        (found,) = tallies(survey(tmp_path, table), [by_age], Counting(unit=TWO, periods=periods))
        counts = found.dense().reshape(-1, 2)[: now + 1].tolist()
        assert counts[: len(past)] == past
        past = counts
    without = [record for record in records if record[2] is not None]
    (unbounded,) = tallies(survey(tmp_path, without), [by_age])
    assert unbounded.dense().sum() > sum(map(sum, past))


@pytest.mark.slow
def test_postgresql_keeps_and_weighs_the_records_that_duckdb_does(tmp_path, monkeypatch):
    names = {f"h{i}": f"{'ß é🌲 aA'[i % 7]}{i}" for i in range(60)}
    records = [(names[home], *rest) for home, *rest in made_up()]
    columns = ["home", *COLUMNS, "weight"]
    frame = pd.DataFrame(records, columns=columns).astype({"age": "Int64"})
    source = in_postgresql(frame, tmp_path, monkeypatch)
    domains, periods = [BY_SEX, EVERYTHING], Periods(COLUMNS["age"].axis("age"), 2)
    session = open_postgresql(source, READ, 1, HOMES)
    with held_open(session):
        validate(session, READ)
        there = keep_records(session.table, TWO).to_pyarrow().select(columns).to_pydict()
        weighted = tallies(session, domains, Counting(unit=TWO, weights=HALVES))
        dated = tallies(session, domains, Counting(unit=TWO, periods=periods))
    expected = oracle([(str(home), *rest) for home, *rest in records], TWO)
    assert Counter(zip(*there.values(), strict=True)) == expected
    copy = survey(tmp_path, records)
    here = tallies(copy, domains, Counting(unit=TWO, weights=HALVES))
    here += tallies(copy, domains, Counting(unit=TWO, periods=periods))
    for one, other in zip([*weighted, *dated], here, strict=True):
        assert one.cells.tolist() == other.cells.tolist()
        assert one.counts.tolist() == other.counts.tolist()
