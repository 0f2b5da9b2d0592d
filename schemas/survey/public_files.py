"""Public lists that are too long for a plan: CSV files in its folder, read into it.

    columns: {tract: {type: categorical, categories: tracts.csv}}        values of its column `tract`
    columns: {tract: {refines: {county: tracts.csv}}}                    the county of each tract
    releases: [{hierarchy: {columns: [state, tract], members: tracts.csv}}]
    releases: [{totals: {by: state, counts: states.csv}}]                with a column `records`

A loaded plan contains the values instead of the file's name. So digest, manifest and approval apply to
the values. A missing file, or a file without a needed column or value, is an error. The survey itself is
refused as such a file, because its contents would be published without noise.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from dpcore.errors import PlanError
from dpcore.suggestion import suggestion
from schemas.survey.blanks import BLANK
from schemas.survey.found import OPEN

RECORDS = "records"
"""The column with the totals in a file of totals."""


def read_public_files(plan: Path, document: dict[str, Any]) -> None:
    """Replace the names of public files in a plan's document by their contents."""
    columns = _mapping(document.get("columns"))
    rows_of = partial(_rows, plan, document.get("source"))
    for name, column in columns.items():
        categories = _mapping(column).get("categories")
        if isinstance(categories, str) and categories not in (BLANK, OPEN):
            place = f"columns.{name}.categories"
            rows = rows_of(place, categories, [name], others=True)
            column["categories"] = list(dict.fromkeys(row[0] for row in rows))
        for group, codes in _mapping(_mapping(column).get("refines")).items():
            if isinstance(codes, str) and isinstance(name, str) and isinstance(group, str):
                place = f"columns.{name}.refines.{group}"
                rows = rows_of(place, codes, [name, group], others=True)
                if len({row[0] for row in rows}) < len({tuple(row) for row in rows}):
                    raise PlanError(f"{place}: {codes} has two groups for one value of {name}")
                column["refines"][group] = dict(rows)
    releases = document.get("releases")
    for i, release in enumerate(releases if isinstance(releases, list) else ()):
        regions, totals = (_mapping(_mapping(release).get(key)) for key in ("hierarchy", "totals"))
        names = regions.get("columns")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            continue
        if isinstance(regions.get("members"), str):
            place = f"releases[{i}].hierarchy.members"
            regions["members"] = csv_text(rows_of(place, regions["members"], names))
        if isinstance(totals.get("counts"), str) and totals.get("by") in names:
            place, path = f"releases[{i}].totals.counts", names[: names.index(totals["by"]) + 1]
            rows = rows_of(place, totals["counts"], [*path, RECORDS])
            totals["counts"] = [[*row[:-1], _whole(place, row[-1])] for row in rows]


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as the lines of a CSV file without column names."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _mapping(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}


def _rows(
    plan: Path,
    source: object,
    place: str,
    name: str,
    columns: Sequence[str],
    others: bool = False,
) -> list[list[str]]:
    """The values of some columns of a CSV file, in order. ``others``: allow further columns."""
    if Path(name).suffix.lower() != ".csv":
        raise PlanError(f"{place}: write a list or the name of a .csv file, not {name!r}")
    path = plan.parent / name
    if isinstance(source, str) and any(_same(path, of) for of in (plan.parent / source, source)):
        raise PlanError(
            f"{place}: {path} is the survey, and its values are private; list public values"
        )
    if path.exists() and not path.is_file():
        raise PlanError(f"{place}: {path} is not a file")  # opening a pipe may block for ever
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file, strict=True)
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "no CSV in UTF-8 with a line of column names"
        raise PlanError(f"{place}: {path} cannot be read ({reason})") from None
    missing = [column for column in columns if header.count(column) != 1]
    if missing:
        others_named = [column for column in header if column != missing[0]]
        raise PlanError(
            f"{place}: {path} must have one column {missing[0]!r}"
            f"{suggestion(missing[0], others_named, most=3)}"
        )
    if not others and len(header) > len(columns):
        unknown = [column for column in header if column not in columns]
        raise PlanError(f"{place}: {path} has columns that are not used here: {unknown}")
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise PlanError(
                f"{place}: {path}, record {line}: has {len(row)} values, not {len(header)}"
            )
    order = [header.index(column) for column in columns]
    whole = order == list(range(len(header)))
    return rows if whole else [[row[i] for i in order] for row in rows]


def _same(path: Path, other: str | Path) -> bool:
    """Whether both are the same file. A command-line source is relative to the working folder."""
    with suppress(OSError, ValueError):
        return path.samefile(other)
    return False


def _whole(place: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise PlanError(f"{place}: {text!r} is not a number of records")
    return int(text)
