"""``dprelease explain``: what a plan costs and how accurate it will be."""

import argparse
from typing import Any

from dpcore.budget import Budget
from flows.cli.arguments import (
    add_command,
    ledger_argument,
    ledger_exists,
    overrides_of,
    plan_arguments,
)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "explain", _explain, "print cost and accuracy; opens no data")
    plan_arguments(parser)
    ledger_argument(parser)


def _explain(options: argparse.Namespace) -> None:
    from schemas.plan import load_plan
    from tasks.explain import explain
    from tasks.home import ledger_url

    plan = load_plan(options.plan, overrides_of(options))
    granted, spent = None, Budget()
    url = ledger_url()
    if ledger_exists(url):
        from tasks.ledger import Ledger

        ledger = Ledger(url, create=False)
        granted, spent = ledger.granted(plan.dataset), ledger.spent(plan.dataset)
    print(explain(plan, granted, spent))
