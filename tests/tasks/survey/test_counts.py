"""A table in which each row stands for several records gives what those records give."""

from pathlib import Path

import pandas as pd
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.errors import DataError
from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from schemas.document import faults_of, written_faults
from schemas.plan import Plan, ValidationError, load_plan, published_plan
from schemas.survey.columns import IntegerColumn
from schemas.survey.unit import COUNT
from tasks.audit.rehearsal import rehearse_shortly
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest
from tasks.survey.steps import ingest_survey, validate_survey
from tasks.survey.tally import Counting, tallies
from tasks.survey.validate import validate
from tests import bare
from tests.conftest import plan_of_every_kind

DIGIT = IntegerColumn(type="integer", bounds=(0, 9), nullable=True)
DIGITS = Domain((DIGIT.axis("digit"),))
READ = {"digit": DIGIT, "n": COUNT}
PRIVATE = Adjacency("add-remove")


def written(folder: Path, digits: list, counts: list, rows: int, adjacency=PRIVATE) -> Path:
    frame = pd.DataFrame({"digit": pd.array(digits, dtype="Int64"), "n": counts})
    frame.to_parquet(folder / "t.parquet")
    return ingest(str(folder / "t.parquet"), READ, rows, folder / "work", adjacency, "n")


def counted(folder: Path, digits: list, counts: list, rows: int, adjacency=PRIVATE) -> list[int]:
    survey = written(folder, digits, counts, rows, adjacency)
    (tally,) = tallies(survey, [DIGITS], Counting(rows=rows, adjacency=adjacency, counts="n"))
    return tally.dense().tolist()


def expanded_and_counted(frame: pd.DataFrame, folder: Path) -> list[Plan]:
    """The same plan of every kind, from records and from a table of counts."""
    frame.to_parquet(folder / "records.parquet")
    cells = frame.groupby(list(frame.columns), dropna=False).size().rename("n").reset_index()
    assert len(cells) < len(frame)
    cells.to_csv(folder / "cells.csv", index=False)
    every = plan_of_every_kind() | {"rows": len(frame)}
    documents = [
        every | {"source": str(folder / "records.parquet")},
        every | {"source": str(folder / "cells.csv"), "counts": "n"},
    ]
    return [Plan.model_validate(document) for document in documents]


@pytest.mark.slow
def test_every_kind_of_release_has_the_same_tally_and_the_same_draw(survey, tmp_path):
    plans = expanded_and_counted(pd.concat([survey, survey[:100], survey[:20]]), tmp_path)
    drawn = []
    for i, plan in enumerate(plans):
        held = ingest_survey.fn(plan, tmp_path / str(i))
        validate_survey.fn(plan, held)
        found = tally_releases(plan, list(plan.built), held)
        statistics = {name: plan.built[name].statistic(tally) for name, tally in found.items()}
        drawn.append(
            {
                name: perturb(exact, release.mechanism, release.share, SeededSource(7)).digest()
                for name, exact in statistics.items()
                for release in [plan.built[name]]
            }
        )
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == len(plan_of_every_kind()["releases"])


WRONG = [None, -3, 2.5, float("nan"), 2**40 + 1, "many"]


@pytest.mark.parametrize(
    ("wrong", "invalid"),
    [*((wrong, "refuse") for wrong in WRONG), (-3, "clamp"), ("many", "drop")],
)
def test_a_count_that_is_not_valid_stops_every_plan_and_is_not_shown(wrong, invalid, tmp_path):
    frame = pd.DataFrame({"sex": ["F", "M"], "age": [20, 30], "n": ["38", wrong]})
    if not isinstance(wrong, str):
        frame["n"] = pd.array([38, wrong], dtype="Int64" if wrong in (None, -3) else "Float64")
    frame.to_parquet(tmp_path / "survey.parquet")
    changes = {"counts": "n", "invalid": invalid, "neighbours": "add-remove"}
    plan = load_plan(written_plan(tmp_path), changes)
    with pytest.raises(DataError) as caught:
        validate_survey.fn(plan, ingest_survey.fn(plan, tmp_path / "work"))
    assert "column 'n', counts: 1 row without a whole number from 0 to" in str(caught.value)
    assert str(wrong) not in str(caught.value).replace(str(2**40), "")


def test_a_row_of_count_zero_stands_for_no_record(tmp_path):
    rows = {"sex": ["F", "none"], "age": ["20", "x"], "n": ["38", "0"]}
    pd.DataFrame(rows).to_csv(tmp_path / "survey.csv", index=False)
    changes = {"counts": "n", "rows": 38, "source": str(tmp_path / "survey.csv")}
    plan = load_plan(written_plan(tmp_path), changes)
    held = ingest_survey.fn(plan, tmp_path / "work")
    validate_survey.fn(plan, held)
    assert tally_releases(plan, list(plan.built), held)["people"].counts.sum() == 38


def written_plan(folder: Path) -> Path:
    (folder / "plan.yaml").write_text(bare.PLAN)
    return folder / "plan.yaml"


@pytest.mark.slow
@pytest.mark.parametrize("invalid", ["clamp", "own-cell", "drop"])
def test_values_that_are_not_valid_are_dealt_with_as_in_the_records(invalid, tmp_path):
    values = ["F", "M", "?", None, "F", "?"]
    cells = pd.DataFrame({"sex": values, "age": [20, 200, 30, -7, None, 50], "n": range(1, 7)})
    records = cells.loc[cells.index.repeat(cells["n"])].drop(columns="n")
    found = []
    for frame, counts in ((cells, {"counts": "n"}), (records, {})):
        frame.to_parquet(tmp_path / "survey.parquet")
        changes = {"invalid": invalid, "neighbours": "add-remove", "rows": 21, **counts}
        plan = load_plan(written_plan(tmp_path), changes)
        held = ingest_survey.fn(plan, tmp_path / f"work{len(found)}")
        found.append(tally_releases(plan, list(plan.built), held))
    for name, tally in found[0].items():
        assert tally.cells.tolist() == found[1][name].cells.tolist()
        assert tally.counts.tolist() == found[1][name].counts.tolist()
    assert found[0]["people"].counts.sum() == (1 if invalid == "drop" else 21)


@pytest.mark.slow
def test_public_rows_are_the_sum_of_the_counts(tmp_path):
    assert counted(tmp_path, [1, 1, None], [2, 3, 4], 9, Adjacency())[1] == 5
    survey = written(tmp_path, [1, 1, None], [2, 3, 4], 3, Adjacency())
    with pytest.raises(DataError, match="the 3 records that `rows` in the plan states"):
        validate(survey, {"n": COUNT}, "clamp")
    with pytest.raises(DataError, match="does not fit the plan"):
        tallies(survey, [DIGITS], Counting(rows=3, adjacency=PRIVATE, counts="n"))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_rehearsal_passes_and_finds_a_tally_that_forgets_counts(neighbours, monkeypatch):
    document = plan_of_every_kind() | {"counts": "n", "neighbours": neighbours, "synthesis": []}
    document["releases"] = document["releases"][:3]
    plan = Plan.model_validate(document)
    rehearse_shortly(plan)
    from tasks.survey import tally

    original = tally.count_cells
    monkeypatch.setattr(tally, "count_cells", lambda t, a, _, i: original(t, a, None, i))
    with pytest.raises(Exception, match=r"not tallied as the audit assumes|that the plan states"):
        rehearse_shortly(plan)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": "age"}, "counts: 'age' is already used"),
        ({"privacy_unit": {"column": "home", "max_rows": 2}}, "remove privacy_unit"),
        (
            {"weights": {"column": "w", "largest": "4", "step": "1", "total": 800}},
            "counts: if a row has several records, their units and weights are unknown",
        ),
    ],
)
def test_a_plan_says_what_counts_cannot_go_with(changes, words, plan_document):
    document = plan_document | {"counts": "n", "synthesis": []} | changes
    document["releases"] = [document["releases"][0] | {"weighted": "weights" in changes}]
    document["budget"]["requested"]["beta"] = "0"
    with pytest.raises(ValidationError) as caught:
        Plan.model_validate(document)
    assert words in written_faults(faults_of(caught.value, document))


@pytest.mark.slow
def test_a_bundle_from_a_table_says_so_and_its_plan_can_be_read_again(tmp_path, monkeypatch):
    pd.DataFrame({"sex": ["F", "M"], "age": [20, 30], "n": [15, 25]}).to_parquet(
        tmp_path / "survey.parquet"
    )
    bare.leave_out_audits(monkeypatch.setattr)
    bundle = bare.release(written_plan(tmp_path), "r1", tmp_path / "out", counts="n")
    from tasks.bundle.verify import read_manifest

    plan = published_plan(read_manifest(bundle).plan)
    assert plan.counts == "n"
    assert "a row of the survey table holds several" in plan.protection.who
    table = pd.read_parquet(bundle / "tables" / "people.parquet")
    assert table["count"].sum() == 40
    assert "n" not in {name for path in bundle.glob("**/*.parquet") for name in columns_of(path)}


def columns_of(path: Path) -> list[str]:
    return list(pd.read_parquet(path).columns)


@pytest.mark.slow
def test_sums_that_64_bits_could_not_hold_are_refused(tmp_path):
    ends = {2**21: 2**61, 2**21 + 1: None}
    for rows, total in ends.items():
        survey = written(tmp_path, [1] * rows, [2**40] * rows, 2**40)
        if total is None:
            with pytest.raises(DataError, match=r"more than a trillion|could not be tallied"):
                tallies(survey, [DIGITS], Counting(rows=2**40, adjacency=PRIVATE, counts="n"))
        else:  # exact, and cut where the number of records is private
            (tally,) = tallies(
                survey, [DIGITS], Counting(rows=2**40, adjacency=PRIVATE, counts="n")
            )
            assert tally.counts.tolist() == [PRIVATE.most_rows(2**40)]
