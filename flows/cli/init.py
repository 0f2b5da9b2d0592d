"""``dprelease init``: write a first plan."""

import os
import re
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from dpcore.errors import InputError
from dpcore.suggestion import suggestion
from flows.cli.arguments import ANSWER, Output, file_option


def init(
    file: Annotated[
        str,
        Parameter(
            help="a Parquet, CSV, Excel, Stata, SPSS or DuckDB file, or package://NAME/PATH inside a"
            " Python package"
        ),
    ],
    /,
    *,
    table: Annotated[
        str | None, Parameter(metavar="NAME", help="the table of a DuckDB file")
    ] = None,
    purpose: Annotated[
        Literal["tables", "records", "functions"],
        Parameter(
            name="--for",
            help="what readers are to get: tables of counts, synthetic records as well, or densities;"
            " default: tables",
        ),
    ] = "tables",
    questionnaire: Annotated[
        Path | None,
        file_option("a CSV file of what the questionnaire says of each column", "CSV"),
    ] = None,
    out: Annotated[
        Path | None, file_option("the file to write; default: standard output", "PLAN")
    ] = None,
    output: Output = ANSWER,
) -> None:
    """Write a first plan from a table's columns, and a questionnaire or its labels; reads no value."""
    from schemas.first_plan.planner import first_plan
    from schemas.first_plan.questionnaire import read_questionnaire
    from schemas.survey.source import TableSource
    from tasks.survey.table_schema import questions_of, table_schema

    columns = table_schema(TableSource(database=file, table=table) if table else file)
    place = _relative_to(out.parent if out else Path(), file)
    source = {"database": place, "table": table} if table else place
    words = re.findall("[a-z0-9]+", (table or Path(file).name.partition(".")[0]).lower())
    said = questions_of(file) if table is None else None
    questions = read_questionnaire(questionnaire) if questionnaire else said
    for name in [name for name in questions or {} if name not in columns]:
        meant = suggestion(name, columns)
        output.note(f"{questionnaire}: {name!r} is no column of the table, and left out{meant}")
    text = first_plan("-".join(words) or "survey", source, columns, purpose, questions)
    if out is None:
        output.answer(text.removesuffix("\n"), {"plan": text})
        return
    try:
        with out.open("x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError:
        raise InputError(f"{out}: is there already; remove it, or give another name") from None
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    output.answer(str(out), {"file": out})


def _relative_to(folder: Path, file: str) -> str:
    """The file's path as a plan in the folder writes it."""
    return file if file.startswith("package://") else os.path.relpath(file, folder)
