"""Surveys on which every engine must say, value by value, what DuckDB says of the same records."""

import datetime
import functools
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.errors import DPReleaseError
from schemas.survey.columns import Column, IdentifierColumn, Invalid, ReadColumn, made_total
from schemas.survey.dates import RANGES
from tasks.survey.ingest import ingest
from tasks.survey.reading import Survey, held_open
from tasks.survey.tally import Counting, tallies
from tasks.survey.validate import validate
from tests.tasks.survey.tables import AWKWARD, SECRETS, column
from tests.tasks.survey.test_tally import AXES, COLUMNS, SHARING, records

REAL = pa.float64()
INTEGER = pa.int32()
ADDED = Adjacency("add-remove")


def faulty_table() -> pa.Table:
    nan, inf = float("nan"), float("inf")
    return pa.table(
        {
            "the income": pa.array([0.5, 2.0, nan, inf, -inf, None, 987654321.0], REAL),
            "age": pa.array([7, None, 987654321, 101, -1, 0, 100], INTEGER),
            "sex": pa.array(["a", "b", "A", None, "a ", "SECRET_7391", ""], pa.string()),
            "code": pa.array([1, 2, 3, None, 987654321, 1, 2], pa.int64()),
            "share": pa.array([0.1, 0.3, nan, None, 0.30000000000000004, 0.2, inf], REAL),
            "truth": pa.array([True, False, None, True, False, True, True]),
        }
    )


FAULTY = {
    "the income": column("continuous", bounds=(0.0, 1.0)),
    "age": column("integer", bounds=(0, 100)),
    "sex": column("categorical", categories=["a", "b"]),
    "code": column("categorical", categories=[1, 2]),
    "share": column("categorical", categories=[0.1, 0.30000000000000004]),
    "truth": column("categorical", categories=[True]),
}


def _of(columns: Mapping[str, Column], **changes: object) -> dict[str, Column]:
    """The columns, changed where they know the change."""
    return {
        name: of.model_copy(update={k: v for k, v in changes.items() if k in type(of).model_fields})
        for name, of in columns.items()
    }


def _clamped() -> tuple[pa.Table, dict[str, Column]]:
    faulty, columns = faulty_table().select(["the income", "age"]), _of(FAULTY, outside="clamp")
    columns = _of({name: columns[name] for name in faulty.column_names}, nullable=True)
    finite = pa.array([True, True, False, False, False, True, True])
    return faulty.filter(finite), columns


Case = tuple[pa.Table, Mapping[str, ReadColumn], int, Sequence[Domain]]


@functools.cache
def cases() -> dict[str, Case]:
    """Records, the plan's columns, the plan's number of rows, and domains to tally."""
    survey = pa.Table.from_pandas(records(4000), preserve_index=False)
    shared = [Domain(tuple(AXES[name] for name in names)) for names in SHARING]
    wide = Domain(tuple(AXES[name] for name in COLUMNS))
    faulty, (moved, clamp) = faulty_table(), _clamped()
    awkward = pa.table({"it s - a name": AWKWARD, "select": list(range(len(AWKWARD)))})
    texts = {
        "select": column("integer", bounds=(0, 99)),
        "it s - a name": column("categorical", categories=AWKWARD[::-1]),
    }
    small = pa.table({"age": pa.array([1, 2], pa.int16()), "x": pa.array([0.1, 0.7], pa.float32())})
    narrow = {
        "age": column("integer", bounds=(0, 9)),
        "x": column("continuous", bounds=(0.0, 1.0)),
    }

    unnamed = pa.table({"home": ["", " ", "  \t", "\n", None, "a b "]})

    fine = {name: column("continuous", bounds=(0.0, 1.0), grid=2**15) for name in "wxyz"}
    points = pa.table({name: pa.array([0.1, 0.7, 1.0, 0.0]) for name in fine})

    day, moment = datetime.date, datetime.datetime
    dates = [day(1, 1, 1), day(1999, 12, 31), day(2000, 2, 29), day(9999, 12, 31), None]
    times = [moment(1, 1, 1), moment(1999, 12, 31, 23, 59, 59), moment(2000, 2, 29, 13), None, None]
    dated = pa.table(
        {
            "on": pa.array(dates, pa.date32()),
            "at": pa.array(times, pa.timestamp("us")),
            "there": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    parts = {
        f"{part} {of}": column(
            "integer", bounds=limits, nullable=True, **{"from": {"column": of, "part": part}}
        )
        for of in dated.column_names
        for part, limits in RANGES.items()
        if (of, part) != ("on", "hour")
    }
    late = {"year": parts["year on"].model_copy(update={"bounds": (2000, 2020), "nullable": False})}

    heaped = pa.table(
        {
            "pay": pa.array([0.0, 100.0, 149.5, 1e6, 250.00000000000003, -0.0, None, 300.0], REAL),
            "age": pa.array([0, 5, 40, 99, 10**6, None, -45, 7], INTEGER),
        }
    )
    unanswered = heaped.append_column("said", pa.array([*"ab", "NA", "-9", "99", None, *"ab"]))
    codes = {"missing": [-45, 99, "NA", 100.0]}
    answers = {
        "pay": column("continuous", bounds=(-1e3, 1e4), outside="clamp", **codes),
        "age": column("integer", bounds=(-50, 99), outside="clamp", **codes),
        "said": column("categorical", categories=["a", "b", "-9"], missing=["NA", 99]),
    }
    known = {"year": parts["year on"].model_copy(update={"missing": ["1999-12-31"]})}

    odd = [1.0, float("nan"), None, float("inf")]
    unknown = pa.table({"real": pa.array(odd), "text": ["a", "NaN", "nan", "nano"]})
    unknowns = {
        "real": column("continuous", bounds=(0.0, 4.0), outside="clamp", missing=["NaN"]),
        "text": column("categorical", categories=["a", "nano"], missing=["NaN"]),
    }
    number = {"format": "1.234,5", "nullable": True, "missing": [-9]}
    people = pa.table(
        {
            "pay": ["1.234,5", "-9", "-9,0", "x", "7", None, "12\u0085"],
            "age": ["1.234", "7,0", "7,5", "-9", "SECRET_7391", "7", "12\u0085"],
            "day": ["31.12.2024", "1.2.2024", "31.2.2024", "", None, "1.1.0001", "1.1.2024\u0085"],
        }
    )
    written = {
        "pay": column("continuous", bounds=(-10.0, 2e3), **number),
        "age": column("integer", bounds=(-10, 2000), **number),
        "month": column(
            "integer",
            bounds=(1, 12),
            nullable=True,
            format="DD.MM.YYYY",
            **{"from": {"column": "day", "part": "month"}},
        ),
    }
    readable = people.filter(pa.array([True, True, *[False] * 3, True, False]))

    edges = Grid("pay", 1.0, 100.0, 64, transform="log").edge(np.arange(65))
    beside = [np.nextafter(edges, 0.0), edges, np.nextafter(edges, 1e9)]
    positive = pa.table({"pay": pa.array(np.clip(np.concatenate(beside), 1.0, 100.0))})

    def axes(columns: Mapping[str, Column]) -> list[Domain]:
        return [Domain(tuple(of.axis(name) for name, of in columns.items()))]

    return {
        "every kind of axis": (survey, COLUMNS, 4000, [*shared, wide]),
        "every fault": (faulty, FAULTY, 7, []),
        "every fault but null": (faulty, _of(FAULTY, nullable=True), 7, []),
        "not finite, clamped": (faulty, _of(FAULTY, outside="clamp", nullable=True), 7, []),
        "clamped": (moved, clamp, moved.num_rows, axes(clamp)),
        "awkward text": (awkward, texts, len(AWKWARD), axes(texts)),
        "narrow types": (small, narrow, 2, axes(narrow)),
        "a domain of 2^60 cells": (points, fine, 4, axes(fine)),
        "units without a name": (unnamed, {"home": IdentifierColumn()}, 6, []),
        "wrong number of rows": (small, narrow, 3, []),
        "a column too few": (small, {**narrow, "Age ": narrow["age"]}, 2, []),
        "parts of dates": (
            dated,
            parts,
            5,
            [Domain((of.axis(name),)) for name, of in parts.items()],
        ),
        "no answer": (unanswered, answers, 8, axes(answers)),
        "transformed axes": (
            positive,
            {"pay": column("continuous", bounds=(1.0, 100.0))},
            len(positive),
            [
                Domain((Grid("pay", 1.0, 100.0, cells, transform=name),))
                for name, cells in (("log", 1024), ("sqrt", 256), ("log1p", 64))
            ],
        ),
        "no number": (unknown.slice(0, 3), unknowns, 3, axes(unknowns)),
        "numbers and dates as people write them": (readable, written, 3, axes(written)),
        "what is written otherwise": (people, written, 7, []),
        "no date": (dated, known, 5, axes(known)),
        "dates that break rules": (dated, late, 5, []),
        "another's cells": (small, narrow, 2, [Domain((narrow["age"].bins("age", [0, 2, 10]),))]),
    }


def outcome(
    begin: Callable[[], Survey], columns: Mapping[str, Column], rows: int, domains: Sequence[Domain]
) -> Any:
    """The refusal, or every cell and count of every tally."""
    try:
        with held_open(begin()) as survey:
            validate(survey, columns)
            found = tallies(survey, domains, Counting(rows=rows))
    except DPReleaseError as error:
        told = "".join(traceback.format_exception(error))
        if any(secret in told for secret in SECRETS):
            raise AssertionError("a refusal tells a value") from None
        return str(error)
    return [list(zip(t.cells.tolist(), t.counts.tolist(), strict=True)) for t in found]


def embedded(case: Case, folder: Path) -> Any:
    """What DuckDB says, of a private copy."""
    table, columns, rows, domains = case
    pq.write_table(table, folder / "survey.parquet")
    source = str(folder / "survey.parquet")
    return outcome(lambda: ingest(source, columns, rows, folder / "work"), columns, rows, domains)


def settled(begin: Callable[[Mapping[str, ReadColumn]], Survey], invalid: Invalid) -> Any:
    """Every cell and count of a table with every fault, by a rule for values that are not valid."""
    columns = {name: made_total(of, invalid) for name, of in FAULTY.items()}
    domains = [Domain((of.axis(name),)) for name, of in columns.items()]
    with held_open(begin(columns)) as survey:
        found = tallies(
            survey, domains, Counting(rows=7, adjacency=ADDED, columns=columns, invalid=invalid)
        )
    return [(t.cells.tolist(), t.counts.tolist()) for t in found]


def settled_here(invalid: Invalid, folder: Path) -> Any:
    """What DuckDB counts, of a private copy."""
    pq.write_table(faulty_table(), source := str(folder / "survey.parquet"))
    return settled(lambda columns: ingest(source, columns, 7, folder / "work", ADDED), invalid)
