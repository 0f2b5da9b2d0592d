"""``dprelease explain``: what a plan costs and how accurate it will be."""

import argparse
from pathlib import Path
from typing import Any

from dpcore.budget import Budget
from dpcore.errors import BudgetError, InputError
from flows.cli.arguments import (
    add_command,
    ledger_argument,
    ledger_exists,
    overrides_of,
    plan_arguments,
    require_svg,
)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "explain", _explain, "print cost and accuracy; opens no data")
    plan_arguments(parser)
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
    ledger_argument(parser)


def _explain(options: argparse.Namespace) -> None:
    from schemas.plan import load_plan
    from tasks.choose import choice_text, choose
    from tasks.explain import explain, mismatch
    from tasks.home import ledger_url

    plan = load_plan(options.plan, overrides_of(options))
    if options.plot is not None:
        _draw(plan, options.plot)
    granted, spent, refusal = None, Budget(), ""
    url = ledger_url()
    if ledger_exists(url):
        from tasks.ledger import Ledger

        ledger = Ledger(url, create=False)
        granted, spent = ledger.granted(plan.dataset), ledger.spent(plan.dataset)
        refusal = mismatch(plan, ledger)
    requested = plan.budget.requested.budget
    if options.target is None:
        print(explain(plan, granted, spent, refusal))
    else:
        choice = choose(plan, *_target(options.target))
        print(choice_text(plan, choice))
        requested = Budget(choice.total, requested.beta, requested.gamma)
    grant = plan.budget.granted.budget if granted is None else granted
    if not grant.covers(spent + requested):
        raise BudgetError("the grant does not cover this release: it would be refused")
    if refusal:
        raise BudgetError(refusal)


def _draw(plan: Any, file: Path) -> None:
    from tasks.trade_off import trade_off_picture

    require_svg(file)
    file.write_text(trade_off_picture(plan), encoding="utf-8")


def _target(text: str) -> tuple[str, float, str]:
    """Release, wanted error and part of the statement's name."""
    place, separator, value = text.rpartition("=")
    release, _, quantity = place.partition(":")
    try:
        wanted = float(value)
    except ValueError:
        wanted = 0.0
    if not separator or not 0 < wanted < float("inf"):
        raise InputError(f"--target {text}: write RELEASE=ERROR, a positive number")
    return release, wanted, quantity
