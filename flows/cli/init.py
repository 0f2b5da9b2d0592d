"""``dprelease init``: write a first plan."""

import argparse
import os
import re
from pathlib import Path
from typing import Any

from dpcore.errors import InputError
from flows.cli.arguments import add_command


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "init",
        _init,
        "write a first plan from the names and types of a table's columns; reads no value",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a Parquet, CSV or DuckDB file, or package://NAME/PATH inside a Python package",
    )
    parser.add_argument("--table", metavar="NAME", help="the table of a DuckDB file")
    parser.add_argument(
        "--for",
        choices=("tables", "records", "functions"),
        default="tables",
        dest="purpose",
        help="what readers are to get: tables of counts, synthetic records as well, or densities;"
        " default: tables",
    )
    parser.add_argument(
        "--out", type=Path, metavar="PLAN", help="the file to write; default: standard output"
    )


def _init(options: argparse.Namespace) -> None:
    from schemas.first_plan import first_plan
    from schemas.source import TableSource
    from tasks.survey.table_schema import table_schema

    table, out = options.table, options.out
    columns = table_schema(
        TableSource(database=options.file, table=table) if table else options.file
    )
    place = _relative_to(out.parent if out else Path(), options.file)
    source = {"database": place, "table": table} if table else place
    words = re.findall("[a-z0-9]+", (table or Path(options.file).name.partition(".")[0]).lower())
    text = first_plan("-".join(words) or "survey", source, columns, options.purpose)
    if out is None:
        print(text, end="")
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    print(out)


def _relative_to(folder: Path, file: str) -> str:
    """The file's path as a plan in the folder writes it."""
    return file if file.startswith("package://") else os.path.relpath(file, folder)
