"""Runs that try to leak: good and failing releases of surveys with secrets in every column.

    python -m tests.flows.leak_runs FOLDER

Runs on the Prefect server that PREFECT_API_URL names and prints, as JSON, how each run ended and
what could be read by others while it worked.  The surveys lie in FOLDER/surveys; what the runs
leave elsewhere must hold no secret.  The last flow leaks on purpose, other values, every way it can.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd
from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.events import emit_event

import tasks.draw
from flows.release import release

NAME, CATEGORY, BROKEN = "Geheimnis-Änne-7391", "Forbidden-Region-5", "Not-A-Number-66"
DWELLING, TOO_LARGE = 7319247, 86753091
AMOUNT, TOO_MUCH = 7391.4825, 98123.4567
SECRETS = (NAME, CATEGORY, BROKEN, DWELLING, TOO_LARGE, AMOUNT, TOO_MUCH)
LEAKED = ("Leaked-Parameter-1", "Leaked-Log-22", "Leaked-Error-333", "Leaked-Artifact-4")
LEAKED += ("Leaked-Event-55", "Leaked-Result-666", 5550001, 4242.4247)

ROWS = 60
PLAN = """
dprelease: 1
dataset: survey
source: survey.parquet
rows: 60
privacy_unit: row
neighbours: replace-one
budget:
  granted: {alpha: "90", beta: "1e-5", gamma: "0"}
  requested: {alpha: "3", beta: "1e-6", gamma: "0"}
columns:
  sex: {type: categorical, categories: [F, M]}
  region: {type: categorical, categories: [north, south], nullable: true}
  dwelling: {type: integer, bounds: [0, 9999999]}
  income: {type: continuous, bounds: [0, 9000], grid: 64}
releases:
  - {name: people, kind: histogram, columns: [sex, region, dwelling], bins: {dwelling: 4}}
  - {name: pairs, kind: margins, columns: [sex, income], ways: 2, bins: {income: 4},
     mechanism: discrete-gaussian}
  - {name: wealth, kind: density, columns: [income], bandwidth: 0.2, mechanism: binned-laplace}
  - {name: rich, kind: classifier, features: [sex, dwelling], label: {column: income, at_least: 30},
     bandwidth: [1, 0.5], regularisation: 0.1, frequencies: 8}
synthesis:
  - {name: everybody, from: pairs, rows: 60}
publication: {title: A survey with secrets}
"""


def survey() -> pd.DataFrame:
    """A table that fits the plan, with secrets inside the bounds and in a column not asked for."""
    return pd.DataFrame(
        {
            "sex": ["F", "M"] * (ROWS // 2),
            "region": ["north", "south", None] * (ROWS // 3),
            "dwelling": [DWELLING] * 5 + list(range(ROWS - 5)),
            "income": [AMOUNT] * 5 + list(range(ROWS - 5)),
            "name": [NAME] * ROWS,
        }
    )


def with_value(column: str, value: object) -> pd.DataFrame:
    table = survey()
    table[column] = table[column].astype(object)
    table.loc[7, column] = value
    return table


def bad_csv(path: Path, broken: bytes) -> Path:
    """The survey as CSV with some bytes in place of the fifth line's first field."""
    lines = survey().to_csv(index=False).encode().splitlines(keepends=True)
    lines[5] = broken + lines[5]
    path.write_bytes(b"".join(lines))
    return path


def surveys(folder: Path) -> Iterator[tuple[str, Path | dict]]:
    """Name and source of every survey; all but the first do not fit the plan."""
    tables = {
        "good": survey(),
        "unknown category": with_value("region", CATEGORY),
        "text for a number": with_value("dwelling", BROKEN).astype({"dwelling": str}),
        "a number for text": with_value("sex", TOO_LARGE).astype({"sex": str}),
        "fraction for a whole number": with_value("dwelling", TOO_MUCH).astype({"dwelling": float}),
        "integer out of bounds": with_value("dwelling", TOO_LARGE).astype({"dwelling": int}),
        "amount out of bounds": with_value("income", TOO_MUCH).astype({"income": float}),
        "null": with_value("income", np.nan).astype({"income": float}),
        "infinity": with_value("income", np.inf).astype({"income": float}),
        "a column missing": survey().drop(columns="income"),
        "a row too many": pd.concat([survey(), survey().head(1)]),
        "a list in a column": survey().assign(income=[[AMOUNT]] * ROWS),
    }
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        table.to_parquet(path)
        yield name, path
    yield "bytes that are no UTF-8", bad_csv(folder / "encoding.csv", NAME.encode("latin-1"))
    yield "a quote that never ends", bad_csv(folder / "quote.csv", f'"{NAME}'.encode())
    yield "too many fields", bad_csv(folder / "fields.csv", f"{NAME},{AMOUNT},".encode())
    cut = folder / "cut.parquet"
    cut.write_bytes((folder / "good.parquet").read_bytes()[:-40])
    yield "a damaged file", cut
    with duckdb.connect(str(folder / "survey.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS FROM '{folder}/unknown category.parquet'")
    yield "a database", {"database": str(folder / "survey.duckdb"), "table": "people"}


def readable_by_others(home: Path) -> list[str]:
    """What under the home another user could open: a closed folder closes what lies in it."""
    found = []
    for path in home.iterdir() if home.stat().st_mode & 0o077 else ():
        found.append(str(path))
    for path in home.glob("private/*/survey.duckdb*"):
        if path.stat().st_mode & 0o077 or path.parent.stat().st_mode & 0o077:
            found.append(str(path))
    return found


@contextmanager
def stumbling(place: str) -> Iterator[None]:
    """A library that fails, at some place of the flow, and quotes what it stumbled over."""

    def stumble(*_: object, **__: object) -> None:
        raise ValueError(f"cannot convert {NAME}, {AMOUNT}") from KeyError(DWELLING)

    with patch(place, stumble):
        yield


@task(persist_result=True)
def leaky_task(word: str) -> tuple:
    return LEAKED[5:]


@flow(persist_result=True)
def leaky_flow(word: str) -> None:
    """What a careless flow does."""
    get_run_logger().warning(LEAKED[1])
    create_markdown_artifact(LEAKED[3], key="leak")
    emit_event("leak", resource={"prefect.resource.id": "leak"}, payload={"value": LEAKED[4]})
    leaky_task(word)
    raise ValueError(LEAKED[2])


def attempt(run: Callable[[], object]) -> str:
    try:
        run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "published"


def main(folder: Path) -> None:
    (folder / "surveys").mkdir(mode=0o700)
    plan, home = folder / "plan.yaml", Path(os.environ["DPRELEASE_HOME"])
    plan.write_text(PLAN)
    ends, open_to_others, working = {}, [], []

    def run(release_id: str, source: object) -> str:
        return attempt(
            lambda: release(str(plan), release_id, str(folder / "out"), {"source": source})
        )

    tallies = tasks.draw.tallies

    def look_and_tally(*args: object, **options: object) -> object:
        open_to_others.extend(readable_by_others(home))
        working.extend(map(str, home.glob("private/*/survey.duckdb")))
        return tallies(*args, **options)

    sources = dict(surveys(folder / "surveys"))
    with patch("tasks.draw.tallies", look_and_tally):
        for number, (name, source) in enumerate(sources.items()):
            ends[name] = run(f"r{number}", source if isinstance(source, dict) else str(source))
    for number, place in enumerate(
        (
            "tasks.survey.ingest._copy",
            "tasks.survey.validate._count",
            "tasks.draw.tallies",
            "tasks.draw.perturb",
        )
    ):
        with stumbling(place):
            ends[f"stumbling in {place}"] = run(f"s{number}", str(sources["good"]))
    attempt(lambda: leaky_flow(LEAKED[0]))
    print(json.dumps({"ends": ends, "open": open_to_others, "working": working}))


if __name__ == "__main__":
    os.umask(0)  # nothing may rest on the user's habits
    main(Path(sys.argv[1]))
