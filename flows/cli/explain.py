"""``dprelease explain``: print what a plan costs and how accurate it will be."""

import argparse
import json
from pathlib import Path
from typing import Any

from dpcore.budget import Budget, total
from dpcore.errors import BudgetError, InputError
from flows.cli.arguments import (
    add_command,
    add_ledger_argument,
    add_plan_arguments,
    read_overrides,
    require_svg,
    write_file,
)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "explain", _explain, "print cost and accuracy; opens no data")
    add_plan_arguments(parser)
    parser.add_argument(
        "--target",
        metavar="RELEASE[:STATEMENT]=ERROR",
        help="print the least alpha that brings an expected error of a release to this value: its "
        "first error statement, or the one with STATEMENT in its name",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the expected error of each release against its alpha, as SVG (FILE ends in .svg)",
    )
    parser.add_argument(
        "--analysis",
        metavar="FORMULA",
        help='say whether the plan supports a model, such as "y ~ a + b", and with what standard errors',
    )
    parser.add_argument(
        "--family",
        default="gaussian",
        choices=("gaussian", "binomial", "poisson"),
        help="of the model of --analysis: linear (the default), logistic or Poisson",
    )
    parser.add_argument(
        "--like",
        type=Path,
        metavar="BUNDLE",
        help="with --analysis: expect a survey like that of a published bundle, such as last year's,"
        " in place of independent columns with equally frequent cells",
    )
    parser.add_argument(
        "--json", action="store_true", help="with --analysis: print the result as JSON"
    )
    add_ledger_argument(parser)


def _explain(options: argparse.Namespace) -> None:
    from schemas.plan import load_plan
    from tasks.explain.explain import explain, explain_refusal
    from tasks.explain.target import find_target, target_text
    from tasks.ledger.runs_and_grant import at_its_run
    from tasks.workplace.home import ledger_exists, ledger_url

    plan = load_plan(options.plan, read_overrides(options))
    if plan.series and (options.plot or options.target):
        raise InputError(
            "--target, --plot: the price of a run of a series depends on the runs before; compare plans"
            " with `dprelease explain` instead"
        )
    if options.analysis is not None:
        _say_analysis(plan, options)
        return
    if options.json or options.like:
        raise InputError("--json, --like: are for --analysis, which is missing")
    if options.plot is not None:
        _draw(plan, options.plot)
    granted, spent, refusal = None, Budget(), ""
    if ledger_exists():
        from tasks.ledger import Ledger

        ledger = Ledger(ledger_url(), create=False)
        plan = at_its_run(plan, ledger)
        granted, spent = ledger.granted(plan.dataset), ledger.spent(plan.dataset)
        refusal = explain_refusal(plan, ledger)
    requested = total(plan.prices.values())
    if options.target is None:
        print(explain(plan, granted, spent, refusal))
    else:
        target = find_target(plan, *_read_target(options.target))
        print(target_text(plan, target))
        requested = target.total
    grant = plan.budget.caps if granted is None else granted
    if not grant.covers(spent + requested):
        raise BudgetError("the grant does not cover this release, so it would be refused")
    if refusal:
        raise BudgetError(refusal)


def _say_analysis(plan: Any, options: argparse.Namespace) -> None:
    from tasks.bundle.reader import open_bundle
    from tasks.explain.analysis import analysis_dict, analysis_text

    like = open_bundle(options.like).evidence if options.like else None
    asked = (plan, options.analysis, options.family, like)
    if not options.json:
        print(analysis_text(*asked))
        return
    found = analysis_dict(*asked)
    print(json.dumps(found, indent=2))
    if not found["supported"]:
        raise InputError(found["reason"])


def _draw(plan: Any, file: Path) -> None:
    from tasks.explain.trade_off import trade_off_picture

    require_svg(file)
    write_file("--plot", file, trade_off_picture(plan))


def _read_target(text: str) -> tuple[str, float, str]:
    """The release, the wanted error and a part of the statement's name."""
    place, separator, value = text.rpartition("=")
    release, _, quantity = place.partition(":")
    try:
        wanted = float(value)
    except ValueError:
        wanted = 0.0
    if not separator or not 0 < wanted < float("inf"):
        raise InputError(f"--target {text}: write RELEASE=ERROR with a positive number")
    return release, wanted, quantity
