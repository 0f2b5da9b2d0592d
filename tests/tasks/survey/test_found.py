"""Texts are counted as they are written, each by itself, and one record of each unit."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.texts import LONGEST, texts, texts_at
from schemas.survey.columns import IdentifierColumn
from schemas.survey.unit import COUNT, UnitColumn
from tasks.survey.engines.postgresql import open_postgresql
from tasks.survey.found import tally_texts
from tasks.survey.ingest import ingest
from tasks.survey.reading import Survey, held_open
from tasks.survey.tally import Counting, tallies
from tests.tasks.survey.tables import AWKWARD, column, in_postgresql

TOWN = column("categorical", categories="open", nullable=True)
HOME = UnitColumn(column="home", max_rows=6)


def found(folder: Path, frame: pd.DataFrame, unit=None, counts=None, most=1000) -> Counter:
    folder.mkdir(exist_ok=True)
    frame.to_parquet(folder / "t.parquet")
    read = {"town": TOWN, "home": IdentifierColumn(), "n": COUNT}
    copy = ingest(
        str(folder / "t.parquet"),
        {name: read[name] for name in frame.columns},
        1,
        folder / "work",
        Adjacency("add-remove"),
        counts,
    )
    tally = tally_texts(copy, "town", texts("town"), most, unit, counts)
    named = texts_at(texts("town").unpack(tally.cells))
    return Counter(dict(zip(named, tally.counts.tolist(), strict=True)))


@pytest.mark.slow
def test_texts_are_counted_as_they_are_and_some_nowhere(tmp_path):
    texts = [*AWKWARD, "zürich", "Zürich", "Zu\u0308rich", "東京", "x" * LONGEST]
    nowhere = [None, "a\0b", "x" * (LONGEST + 1), "東" * LONGEST]
    frame = pd.DataFrame({"town": [*texts, *texts, *nowhere]})
    assert found(tmp_path, frame) == Counter(dict.fromkeys(texts, 2))
    assert found(tmp_path / "cut", frame, most=1) == Counter(dict.fromkeys(texts, 1))
    assert found(tmp_path / "none", pd.DataFrame({"town": [None, "a\0b"]})) == Counter()


@pytest.mark.slow
def test_numbers_are_texts_of_their_digits_whatever_type_they_have(tmp_path):
    for i, numbers in enumerate(([1, 2, 2], [1.0, 2.0, 2.0], ["1", "2", "2"])):
        assert found(tmp_path / str(i), pd.DataFrame({"town": numbers})) == {"1": 1, "2": 2}


def test_a_row_counts_as_many_records_as_it_says(tmp_path):
    frame = pd.DataFrame({"town": ["Bern", "Bern", "Ulm"], "n": [3, 4, 0]})
    assert found(tmp_path, frame, counts="n") == {"Bern": 7}


@pytest.mark.slow
def test_a_unit_counts_once_whatever_else_it_says_and_no_unit_moves_another(tmp_path):
    one = [("a", "Bern"), ("a", None), ("b", "Ulm"), (None, "Ulm"), ("", "Ulm")]
    alone = found(tmp_path / "one", pd.DataFrame(one, columns=["home", "town"]), HOME)
    assert alone == {"Bern": 1, "Ulm": 1}
    many = [*one, *(("c", f"text {i}") for i in range(2000))]
    both = found(tmp_path / "many", pd.DataFrame(many, columns=["home", "town"]), HOME)
    assert (both - alone).total() == 1
    assert alone - both == Counter()


@pytest.mark.parametrize("order", [1, -1])
def test_which_record_of_a_unit_counts_does_not_depend_on_their_order(tmp_path, order):
    records = [("a", town) for town in ("Bern", "Ulm", "Rom")][::order]
    frame = pd.DataFrame(records, columns=["home", "town"])
    assert found(tmp_path, frame, HOME) == {"Bern": 1}


@pytest.mark.slow
def test_postgresql_finds_and_clamps_what_duckdb_does(tmp_path, monkeypatch):
    pay = column("continuous", bounds="open", nullable=True).with_found((0.0, 50.0))
    town = column("categorical", categories="open", nullable=True).with_found({"Bern": 5, "é": 4})
    read = {"town": town, "pay": pay, "home": IdentifierColumn()}
    frame = pd.DataFrame({"town": ["Bern", "bern", "é", "e\u0301", None, "", "x" * 300]})
    frame["pay"] = [-3.0, 1e9, 20.0, np.nan, np.inf, None, 49.0]
    frame["home"] = ["a", "a", "b", "b", "c", "d", "e"]
    source = in_postgresql(frame, tmp_path, monkeypatch)
    frame.to_parquet(tmp_path / "t.parquet")
    homes = Adjacency("add-remove", 6, unit="home")
    there = open_postgresql(source, read, 7, homes)
    here = ingest(str(tmp_path / "t.parquet"), read, 7, tmp_path / "work", homes)
    both = Domain((town.axis("town"), pay.axis("pay")))

    def counted(survey: Survey) -> list[Tally]:
        known = tallies(
            survey,
            [both],
            Counting(rows=7, adjacency=homes, unit=HOME, columns=read, invalid="own-cell"),
        )
        return [*known, tally_texts(survey, "town", texts("town"), 7, HOME)]

    with held_open(there) as survey:
        found = counted(survey)
    with held_open(here) as survey:
        copied = counted(survey)
    for one, other in zip(found, copied, strict=True):
        assert one.cells.tolist() == other.cells.tolist()
        assert one.counts.tolist() == other.counts.tolist()
    codes = both.unpack(found[0].cells)
    assert {(0, 0), (2, 1023), (1, 409), (2, 1024), (3, 1024)} <= {*map(tuple, codes.tolist())}
    assert found[1].counts.sum() == 3  # of the homes a, b and d; a text of e is too long
