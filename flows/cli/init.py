"""``dprelease init``: write a first plan."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from dpcore.errors import InputError
from dpcore.suggestion import suggestion
from flows.cli.arguments import ANSWER, NO_WISHES, Output, Wishes, file_option


def init(
    file: Annotated[
        str,
        Parameter(
            help="a Parquet, CSV, Excel, Stata, SPSS or DuckDB file (the first --table names its"
            " table), or package://NAME/PATH inside a Python package"
        ),
    ],
    /,
    *,
    purpose: Annotated[
        Literal["tables", "records", "functions"] | None,
        Parameter(
            name="--for",
            help="publish for all columns: tables of all pairs (the default without a wish), synthetic"
            " records, or densities",
        ),
    ] = None,
    wishes: Wishes = NO_WISHES,
    questionnaire: Annotated[
        Path | None,
        file_option("a CSV file that describes each column from the questionnaire", "CSV"),
    ] = None,
    rows: Annotated[
        int | None,
        Parameter(metavar="N", help="the number of records, if the plan should suit it"),
    ] = None,
    alpha: Annotated[
        str, Parameter(metavar="A", help="the cost of a release, if the plan should suit it")
    ] = "",
    out: Annotated[
        Path | None, file_option("the file to write; default: standard output", "PLAN")
    ] = None,
    output: Output = ANSWER,
) -> None:
    """Write the best plan for the wishes, from column names and a questionnaire or labels."""
    from schemas.first_plan.planner import first_plan
    from schemas.first_plan.questionnaire import read_questionnaire
    from schemas.first_plan.sections import named
    from schemas.survey.source import TableSource
    from tasks.explain.analysis import model_error
    from tasks.survey.sources import ENDINGS
    from tasks.survey.table_schema import questions_of, table_schema

    table = None
    if wishes.tables and not file.lower().endswith(ENDINGS):
        table, *others = wishes.tables
        wishes = replace(wishes, tables=tuple(others))
    columns = table_schema(TableSource(database=file, table=table) if table else file)
    place = _relative_to(out.parent if out else Path(), file)
    source = {"database": place, "table": table} if table else place
    dataset = named(table or Path(file).name.partition(".")[0]) or "survey"
    labels = questions_of(file) if table is None else None
    questions = read_questionnaire(questionnaire) if questionnaire else labels
    for name in [name for name in questions or {} if name not in columns]:
        meant = suggestion(name, columns)
        output.note(
            f"{questionnaire}: {name!r} is left out, because it is not a column of the table{meant}"
        )
    said = wishes.said(purpose)
    text = first_plan(dataset, source, columns, said, questions, model_error, rows, alpha)
    if out is None:
        output.answer(text.removesuffix("\n"), {"plan": text})
        return
    try:
        with out.open("x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError:
        raise InputError(f"{out}: already exists; remove it, or give another name") from None
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    output.answer(str(out), {"file": out})


def _relative_to(folder: Path, file: str) -> str:
    """The file's path as written in a plan in this folder."""
    return file if file.startswith("package://") else os.path.relpath(file, folder)
