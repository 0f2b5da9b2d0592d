"""``dprelease evaluate``: compare a synthetic table with the real one."""

import argparse
import json
from pathlib import Path
from typing import Any

from dpcore.errors import InputError
from flows.cli.arguments import add_command, add_ledger_argument, write_file


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "evaluate",
        _evaluate,
        "compare a synthetic table with the real one, without noise: for public test tables only",
    )
    for name, words in (("synthetic", "the synthetic table"), ("real", "the real table")):
        parser.add_argument(
            name, type=Path, metavar=name.upper(), help=f"{words}, a Parquet or CSV file"
        )
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help="the dataset of the real table; refused if it is in the ledger; required if the ledger"
        " has any dataset",
    )
    parser.add_argument(
        "--plan",
        type=Path,
        metavar="PLAN",
        help="instead of --dataset: the plan of the dataset; refused if the real table is its survey",
    )
    parser.add_argument(
        "--not-for-release",
        action="store_true",
        help="allow a private real table; the result is marked as not for release",
    )
    parser.add_argument(
        "--label",
        metavar="COLUMN",
        help="the column that the classifiers predict; default: the last column with two values",
    )
    parser.add_argument(
        "--cells",
        type=int,
        default=20,
        metavar="N",
        help="for margins, cut numeric columns with more values into this many cells; default: 20",
    )
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="also write the results as a page, with charts"
    )
    parser.add_argument(
        "--formula",
        action="append",
        default=[],
        metavar="Y=EXPRESSION",
        help="a formula of numeric columns that should hold of every record, such as"
        " 'BMI = Weight / (Height / 100) ** 2'; may be repeated",
    )
    parser.add_argument(
        "--regression",
        action="append",
        default=[],
        metavar="'Y ~ A + B'",
        help="a linear regression to compare, instead of a few that are chosen; may be repeated",
    )
    parser.add_argument(
        "--key",
        metavar="COLUMN",
        help="the column of both tables that says which records belong together, such as a household",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--sdnist",
        type=Path,
        metavar="OUT",
        help="also write the synthetic table as NIST's SDNist reads it; needs --dictionary",
    )
    parser.add_argument(
        "--dictionary",
        type=Path,
        metavar="FILE",
        help="data_dictionary.json of NIST's excerpts of the American Community Survey",
    )
    add_ledger_argument(parser)


def _evaluate(options: argparse.Namespace) -> None:
    from tasks.evaluate import (
        NOT_FOR_RELEASE,
        evaluate,
        evaluation_page,
        evaluation_text,
        read_pair,
        write_sdnist,
    )

    if options.cells < 2:
        raise InputError("--cells: write a whole number of at least 2")
    if options.page is not None and not options.page.parent.is_dir():
        raise InputError(f"--page: there is no folder {options.page.parent}")
    if (options.sdnist is None) != (options.dictionary is None):
        raise InputError("--sdnist and --dictionary: give both or neither")
    if not options.not_for_release:
        _require_public(options)
    pair = read_pair(options.real, options.synthetic, options.cells, options.key)
    evaluation = evaluate(pair, options.label, options.formula, options.regression)
    if options.json:
        marked = {"not_for_release": options.not_for_release}
        print(json.dumps(marked | evaluation.to_dict(), indent=2, allow_nan=False))
    else:
        print(NOT_FOR_RELEASE + "\n" if options.not_for_release else "", end="")
        print(evaluation_text(evaluation))
    if options.page is not None:
        title = f"{options.synthetic.name} against {options.real.name}"
        warning = NOT_FOR_RELEASE if options.not_for_release else None
        write_file("--page", options.page, evaluation_page(evaluation, title, warning))
    if options.sdnist is not None:
        write_sdnist(options.synthetic, options.dictionary, options.sdnist)


def _require_public(options: argparse.Namespace) -> None:
    from schemas.plan import load_plan
    from tasks.evaluate import require_public
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    ledger = Ledger(ledger_url(), create=False) if ledger_exists() else None
    plan = load_plan(options.plan) if options.plan else None
    require_public(options.real, options.synthetic, ledger, options.dataset, plan)
