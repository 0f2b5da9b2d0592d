"""Writes records in the form that NIST's SDNist reads, checked against its data dictionary.

SDNist compares a table with NIST's excerpts of the American Community Survey.  It drops every record
with an empty field and every column with a code that its ``data_dictionary.json`` does not list.  So
null is written as the letter N ("not applicable"), codes have no decimal point, and lines end as in
NIST's own files.  Columns that are not in the dictionary are omitted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpcore.errors import InputError
from tasks.evaluate.tables import read_table, texts

NULL = "N"
AMOUNTS = frozenset(("PINCP",))
"""Columns that have a decimal point in NIST's files."""


def write_sdnist(table: Path, dictionary: Path, out: Path) -> None:
    """Write a Parquet or CSV table as SDNist reads it, unless a value is not in the dictionary."""
    try:
        columns = json.loads(dictionary.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{dictionary}: is not a data dictionary in JSON ({type(error).__name__})"
        ) from None
    records = sdnist_form(read_table(table), columns)
    try:
        records.to_csv(out, index=False, lineterminator="\r\n")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None


def sdnist_form(records: pd.DataFrame, dictionary: Mapping[str, Any]) -> pd.DataFrame:
    """The columns that are in the dictionary, as text.

    Raises ``InputError`` if there are none, or if a value is not in the dictionary.
    """
    columns = [name for name in records if name in dictionary]
    if not columns:
        raise InputError("no column of the table is in the data dictionary")
    written = pd.DataFrame()
    for name in columns:
        values = [NULL if text is None else text for text in texts(records[name])]
        listed = dictionary[name].get("values")
        unknown = sum(not _known(value, listed) for value in values)
        if unknown:
            raise InputError(
                f"{name}: {unknown} of {len(values)} values are not in the data dictionary"
            )
        if name in AMOUNTS:
            values = [value if value == NULL else str(float(value)) for value in values]
        written[name] = values
    return written


def _known(value: str, listed: Mapping[str, Any] | None) -> bool:
    """Whether a value is a listed code or a number within bounds; without a list, any number is."""
    if listed is None:
        return value == NULL or value.isdecimal()
    if value in listed and value not in ("min", "max"):
        return True
    try:
        return bool(listed["min"] <= float(value) <= listed["max"])
    except (KeyError, ValueError):
        return False
