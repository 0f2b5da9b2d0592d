"""Metadata of Excel, Stata and SPSS files on their columns, for a first plan: names, kinds, labels.

The metadata is public, and does not influence how values are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.first_plan.described import ColumnType
from schemas.first_plan.question import Question
from schemas.survey.blanks import BLANK
from tasks.survey.office_files import DAYS, READERS, TIMES, is_of, metadata, office_table


def office_schema(path: Path) -> Mapping[str, ColumnType]:
    """Names and kinds of columns; a sheet does not state kinds."""
    if path.suffix.lower() == ".xlsx":
        return dict.fromkeys(filter(None, office_table(path).names), ColumnType.OPEN)
    known = metadata(path)
    return {name: _kind(known, name) for name in known.column_names}


def _kind(known: Any, name: str) -> ColumnType:
    stored, kind = known.readstat_variable_types[name], known.original_variable_types[name]
    if stored == "string":
        return ColumnType.TEXT
    if is_of(kind, DAYS) or is_of(kind, TIMES):
        return ColumnType.DAY if is_of(kind, DAYS) else ColumnType.TIME
    whole = stored.startswith("int") or kind.rpartition(".")[2] == "0"  # F8.0: no decimals
    return ColumnType.WHOLE if whole else ColumnType.REAL


def office_questions(path: Path) -> dict[str, Question]:
    """A file's metadata on its columns in the form of a questionnaire; empty if it has none.

    Categories are the labelled values, not the values in the records.
    """
    if path.suffix.lower() not in READERS or path.suffix.lower() == ".xlsx":
        return {}
    known = metadata(path)
    if not any([*known.variable_value_labels.values(), *filter(None, known.column_labels)]):
        return {}
    words = dict(zip(known.column_names, known.column_labels, strict=True))
    return {name: _question(known, name, words[name]) for name in known.column_names}


def _question(known: Any, name: str, words: str | None) -> Question:
    kind = _kind(known, name)
    labels = {
        _code(code): " ".join(str(label).split())
        for code, label in known.variable_value_labels.get(name, {}).items()
        if isinstance(code, str) == (kind is ColumnType.TEXT)  # others are Stata's .a to .z
    }
    missing = list(dict.fromkeys(_missing(known, name, list(labels))))
    labels = {code: label for code, label in labels.items() if code not in missing}
    keys: dict[str, Any] = {}
    scale = known.variable_measure.get(name) == "scale"
    if kind in (ColumnType.DAY, ColumnType.TIME):
        keys["bounds"], type = [BLANK, BLANK], "date" if kind is ColumnType.DAY else "time"
    elif kind is ColumnType.TEXT or (len(labels) > 1 and not scale):
        keys["categories"], type = list(labels) or BLANK, "categorical"
    else:
        keys["bounds"] = BLANK
        type = "integer" if kind is ColumnType.WHOLE else "continuous"
    keys |= {"labels": {str(code): label for code, label in labels.items()}} if labels else {}
    keys |= {"missing": missing} if missing else {}
    keys |= {"description": " ".join(words.split())} if words else {}
    return Question(type, keys)


def _code(code: Any) -> Any:
    return int(code) if isinstance(code, float) and code == int(code) else code


def _missing(known: Any, name: str, labelled: list[Any]) -> Iterator[Any]:
    """Yield the codes that SPSS declares missing: single codes, and labelled codes inside ranges."""
    for given in known.missing_ranges.get(name, ()):
        low, high = (
            _code(given[end]) if isinstance(given, dict) else _code(given) for end in ("lo", "hi")
        )
        if low == high:
            yield low
        else:
            yield from (code for code in labelled if low <= code <= high)
