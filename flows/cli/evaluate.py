"""``dprelease evaluate``: compare a synthetic table with the real one."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dpcore.errors import InputError
from flows.cli.arguments import LEDGER_ANSWER, LedgerOutput, file_option, write_file


def evaluate(
    synthetic: Annotated[Path, Parameter(help="the synthetic table, a Parquet or CSV file")],
    real: Annotated[Path, Parameter(help="the real table, a Parquet or CSV file")],
    /,
    *,
    dataset: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            help="the dataset of the real table; required if the ledger has any dataset, and refused"
            " if the ledger has this dataset",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        file_option(
            "instead of --dataset: the plan of the dataset; refused if the real table is its survey",
            "PLAN",
        ),
    ] = None,
    not_for_release: Annotated[
        bool,
        Parameter(help="allow a private real table; the result is marked as not for release"),
    ] = False,
    label: Annotated[
        str | None,
        Parameter(
            metavar="COLUMN",
            help="the column that the classifiers predict; default: the last column with two values",
        ),
    ] = None,
    cells: Annotated[
        int,
        Parameter(
            metavar="N",
            help="for margins, the number of cells of a numeric column with many values; default: 20",
        ),
    ] = 20,
    page: Annotated[
        Path | None, file_option("also write the results as a page, with charts")
    ] = None,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Compare a synthetic table with the real one, without noise: for public test tables only."""
    from tasks.evaluate.compare import evaluate as compare
    from tasks.evaluate.public import NOT_FOR_RELEASE
    from tasks.evaluate.sections import evaluation_page, evaluation_text
    from tasks.evaluate.tables import read_pair

    if cells < 2:
        raise InputError("--cells: write a whole number of at least 2")
    if page is not None and not page.parent.is_dir():
        raise InputError(f"--page: there is no folder {page.parent}")
    if not not_for_release:
        _require_public(real, synthetic, dataset, plan)
    found = compare(read_pair(real, synthetic, cells), label)
    warning, text = NOT_FOR_RELEASE if not_for_release else None, evaluation_text(found)
    output.answer(
        f"{warning}\n{text}" if warning else text,
        {"not_for_release": not_for_release} | found.to_dict(),
    )
    if page is not None:
        title = f"{synthetic.name} against {real.name}"
        write_file("--page", page, evaluation_page(found, title, warning))


def _require_public(real: Path, synthetic: Path, dataset: str | None, plan: Path | None) -> None:
    from schemas.plan import load_plan
    from tasks.evaluate.public import require_public
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    ledger = Ledger(ledger_url(), create=False) if ledger_exists() else None
    require_public(real, synthetic, ledger, dataset, load_plan(plan) if plan else None)
